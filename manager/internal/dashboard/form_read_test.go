package dashboard_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"opensource.internal/manager/servertest"
)

// TestFormsThatAreNotRead: one that is too large, and one that does not arrive, get
// a page that says so, whichever form it is.
func TestFormsThatAreNotRead(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	cookie := signIn(t, s)
	shows(t, submit(t, s, "/sites/new", cookie, url.Values{"name": {strings.Repeat("a", 1<<17)}}), http.StatusRequestEntityTooLarge, "larger than 64 KiB")

	connection, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	fmt.Fprintf(connection, "POST /sites/new HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 4000\r\n\r\nname=a",
		strings.TrimPrefix(s.URL, "http://"), cookie)
	answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusRequestTimeout || !strings.Contains(string(body), "did not arrive within 5 seconds") {
		t.Errorf("%d %s, %v", answer.StatusCode, body, err)
	}
}
