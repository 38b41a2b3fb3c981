package server_test

import (
	"compress/gzip"
	"crypto/tls"
	"io"
	"net/http"
)

// insecure is for proxies of tests, whose certificates nobody has signed.
var insecure = &tls.Config{InsecureSkipVerify: true}

// decoded reads a body as what it was before a proxy compressed it.
func decoded(answer *http.Response) (io.Reader, error) {
	if answer.Header.Get("Content-Encoding") == "gzip" {
		return gzip.NewReader(answer.Body)
	}
	return answer.Body, nil
}
