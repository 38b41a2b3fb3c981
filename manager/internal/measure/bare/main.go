// Command bare is a gin server that decodes a check-in and answers 304, and
// nothing else: what the manager's check-ins are measured against. A check-in
// without If-None-Match gets the snapshot in the file that is its argument.
//
// It prints its URL when it listens, and ends with its standard input.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/gin-gonic/gin"

	"opensource.internal/agent/checkin"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	snapshot := []byte("{}")
	if len(args) == 1 {
		content, err := os.ReadFile(args[0])
		if err != nil {
			return err
		}
		snapshot = bytes.TrimSpace(content)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return http.Serve(listener, handler(snapshot))
}

func handler(snapshot []byte) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	etag := checkin.ETag(snapshot)
	answer := append(append([]byte(`{"data":`), snapshot...), '}')
	engine.POST(checkin.Path, func(c *gin.Context) {
		var request checkin.Request
		if err := c.ShouldBindJSON(&request); err != nil {
			c.AbortWithStatus(http.StatusBadRequest)
			return
		}
		c.Header("ETag", etag)
		if c.GetHeader("If-None-Match") == "" {
			c.Data(http.StatusOK, "application/json", answer)
			return
		}
		c.Status(http.StatusNotModified)
		c.Writer.WriteHeaderNow()
	})
	return engine
}
