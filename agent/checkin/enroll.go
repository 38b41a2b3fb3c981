package checkin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// EnrollPath is where a host turns a token into its key, below the manager's URL.
const EnrollPath = "/api/v1/enroll"

// EnrollRequest turns a token, which an administrator has made for one site,
// into the key of one host. The token is the only credential.
type EnrollRequest struct {
	Token    string `json:"token"`
	Hostname string `json:"hostname"`
	// Nonce is 32 random bytes or more as text. The same token, host and nonce
	// may be sent again for ten minutes, if the answer was lost on the way: the
	// answer then has another key, and the lost one is revoked.
	Nonce string `json:"nonce,omitempty"`
}

// Enrolled is the answer: the key is shown only now.
type Enrolled struct {
	SiteID   int64  `json:"siteId"`
	Hostname string `json:"hostname"`
	Key      string `json:"key"`
}

// maxEnrolled is the largest answer to an enrollment that is read, in bytes.
const maxEnrolled = 64 << 10

// Enroll asks the manager for this host's key. Errors are those of CheckIn.
func (c *Client) Enroll(ctx context.Context, request EnrollRequest) (Enrolled, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	body, err := json.Marshal(request)
	if err != nil {
		return Enrolled{}, fmt.Errorf("encode enrollment: %w", err)
	}
	response, err := c.post(ctx, EnrollPath, body, nil)
	if err != nil {
		return Enrolled{}, err
	}
	defer response.Body.Close()
	return readEnrolled(response)
}

func readEnrolled(response *http.Response) (Enrolled, error) {
	refuse := func(format string, args ...any) (Enrolled, error) {
		return Enrolled{}, &RefusedError{Status: response.StatusCode, Message: fmt.Sprintf(format, args...)}
	}
	if location := response.Header.Get("Location"); response.StatusCode/100 == 3 {
		return refuse("manager redirects to %s (status %d), which is not followed: use the final address", quoted(location), response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxEnrolled))
	if err != nil {
		return refuse("read answer (status %d): %v", response.StatusCode, err)
	}
	if response.StatusCode != http.StatusCreated {
		return Enrolled{}, statusError(response, body)
	}
	if !isJSON(response.Header.Get("Content-Type")) {
		return refuse("answer is not JSON but %s (a login page in front of the manager?)", quoted(response.Header.Get("Content-Type")))
	}
	var envelope struct {
		Data Enrolled `json:"data"`
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&envelope); err != nil {
		return refuse("answer is not complete JSON: %v", err)
	}
	enrolled := envelope.Data
	switch {
	case enrolled.SiteID < 1:
		return refuse("answer names no site")
	case !plainKey(enrolled.Key):
		return refuse("answer has no key that could be one")
	}
	return enrolled, nil
}

// plainKey reports whether a key can be sent in a header and written to a file.
func plainKey(key string) bool {
	for _, c := range []byte(key) {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return key != "" && len(key) <= 1024
}
