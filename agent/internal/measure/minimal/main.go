// Command minimal posts its standard input to a URL and ends: the least that
// an agent written in Go could do. It is what a pass is measured against.
//
// usage: minimal URL ETAG <BODY
package main

import (
	"fmt"
	"net/http"
	"os"
)

func main() {
	request, err := http.NewRequest(http.MethodPost, os.Args[1], os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("If-None-Match", os.Args[2])
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusNotModified {
		fmt.Fprintln(os.Stderr, response.Status)
		os.Exit(1)
	}
}
