// Command bare is a gin server that decodes a check-in and answers 304, and
// nothing else: what the manager's check-ins are measured against. A check-in
// without If-None-Match gets the snapshot in the file that is its argument.
//
// It prints its URL when it listens, and ends with its standard input. With
// -tls it speaks TLS, with a certificate of its own that it writes to a file.
//
// usage: bare [-tls FILE] [SNAPSHOT]
package main

import (
	"bytes"
	"crypto/tls"
	"flag"
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
	flags := flag.NewFlagSet("bare", flag.ContinueOnError)
	certificate := flags.String("tls", "", "speak TLS, and write the certificate to `FILE`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	snapshot := []byte("{}")
	if flags.NArg() == 1 {
		content, err := os.ReadFile(flags.Arg(0))
		if err != nil {
			return err
		}
		snapshot = bytes.TrimSpace(content)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	scheme := "http"
	if *certificate != "" {
		config, err := selfSigned(*certificate)
		if err != nil {
			return err
		}
		listener, scheme = tls.NewListener(listener, config), "https"
	}
	fmt.Printf("%s://%s\n", scheme, listener.Addr())
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
