package checkin

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Path is where agents check in, below the manager's URL.
const Path = "/api/v1/agents"

// MaxAnswer is the largest snapshot an agent reads, in bytes.
const MaxAnswer = 32 << 20

// Timeout bounds one check-in, from connecting to the last byte of the answer.
const Timeout = 10 * time.Second

// Client posts check-ins to one manager.
type Client struct {
	// URL is the manager's base URL; a path in it is kept as a prefix.
	URL *url.URL
	// Key is sent as a bearer token if it is not empty.
	Key string
	// UserAgent names the program and its version.
	UserAgent string
	// Transport is http.DefaultTransport if nil.
	Transport http.RoundTripper
}

// Answer is a manager's answer to a check-in: not modified, or a snapshot that
// has been read strictly, with its exact JSON and its tag.
type Answer struct {
	NotModified bool
	ETag        string
	Data        json.RawMessage
	Snapshot    Snapshot
	Date        time.Time // the manager's clock, in whole seconds; zero if it was not told
}

// RefusedError is an answer that is not a snapshot: the manager said no, or
// what came back cannot be one. Whoever gets it keeps what is running.
type RefusedError struct {
	Status  int    // HTTP status
	Code    string // the manager's error code, if it gave one
	Message string
	Date    time.Time // see Answer
}

func (e *RefusedError) Error() string { return e.Message }

// CheckIn posts the request and reads the answer. ifNoneMatch is the tag of
// the snapshot the agent holds, or empty. Redirects are not followed and the
// key goes to no other host. The error is a *RefusedError if the manager
// answered, and a transport error if it did not.
func (c *Client) CheckIn(ctx context.Context, request Request, ifNoneMatch string) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()

	body, err := json.Marshal(request)
	if err != nil {
		return Answer{}, fmt.Errorf("encode check-in: %w", err)
	}
	header := http.Header{}
	if c.Key != "" {
		header.Set("Authorization", "Bearer "+c.Key)
	}
	if ifNoneMatch != "" {
		header.Set("If-None-Match", ifNoneMatch)
	}
	response, err := c.post(ctx, Path, body, header)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	date, _ := http.ParseTime(response.Header.Get("Date"))
	answer, err := readAnswer(response, ifNoneMatch)
	answer.Date = date
	var refused *RefusedError
	if errors.As(err, &refused) {
		refused.Message += c.hint(refused.Status, refused.Code)
		refused.Date = date
	}
	return answer, err
}

// post sends a body to the manager. Redirects are not followed.
func (c *Client) post(ctx context.Context, path string, body []byte, header http.Header) (*http.Response, error) {
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("prepare request: %w", err)
	}
	for name, values := range header {
		post.Header[name] = values
	}
	post.Header.Set("Content-Type", "application/json")
	post.Header.Set("Accept", "application/json")
	post.Header.Set("User-Agent", c.UserAgent)
	client := &http.Client{
		Transport:     c.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(post)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w%s", acts[path], c.URL.Redacted(), withoutURL(err), certificateHint(err, time.Now()))
	}
	return response, nil
}

// acts say what is done at a path.
var acts = map[string]string{Path: "check in with", EnrollPath: "enroll at"}

// certificateHint says what to look at when the manager's certificate is not
// trusted, or not valid at this time. (The error itself names the time and the
// limit.)
func certificateHint(err error, now time.Time) string {
	const setClock = "set the clock with timedatectl, in a container that of its node"
	var invalid x509.CertificateInvalidError
	var authority x509.UnknownAuthorityError
	switch {
	case errors.As(err, &authority):
		return " (if that is a private one, give its certificate: enroll --ca-file, else MANAGER_CA_FILE)"
	case !errors.As(err, &invalid) || invalid.Reason != x509.Expired || invalid.Cert == nil:
		return ""
	case now.Before(invalid.Cert.NotBefore):
		return " (is this host's clock behind? " + setClock + ")"
	}
	return " (renew the manager's certificate; or if that is not the time, " + setClock + ")"
}

// hint says what to look at when credentials are refused.
func (c *Client) hint(status int, code string) string {
	switch {
	case code == "wrong_host":
		return " (opensource-agent enroll)"
	case status == http.StatusUnauthorized && c.Key == "":
		return " (no key was sent: opensource-agent enroll, or set API_KEY)"
	case status == http.StatusUnauthorized:
		return " (is API_KEY complete, and not revoked?)"
	case status == http.StatusForbidden:
		return " (is API_KEY the key of this site?)"
	}
	return ""
}

// withoutURL drops the URL that net/http puts before its errors; it is already
// in ours.
func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

func readAnswer(response *http.Response, ifNoneMatch string) (Answer, error) {
	refuse := func(format string, args ...any) (Answer, error) {
		return Answer{}, &RefusedError{Status: response.StatusCode, Message: fmt.Sprintf(format, args...)}
	}
	if response.StatusCode == http.StatusNotModified {
		if ifNoneMatch == "" {
			return refuse("manager answered 304 although no tag was sent")
		}
		if etag := response.Header.Get("ETag"); etag != "" && !SameETag(etag, ifNoneMatch) {
			return refuse("manager answered 304 for another tag than the one sent")
		}
		return Answer{NotModified: true, ETag: ifNoneMatch}, nil
	}
	if location := response.Header.Get("Location"); response.StatusCode/100 == 3 {
		return refuse("manager redirects to %s (status %d), which is not followed: set MANAGER_URL to the final address",
			quoted(location), response.StatusCode)
	}

	body, err := io.ReadAll(io.LimitReader(response.Body, MaxAnswer+1))
	if err != nil {
		return refuse("read answer (status %d): %v", response.StatusCode, err)
	}
	if response.StatusCode != http.StatusOK {
		return Answer{}, statusError(response, body)
	}
	if len(body) > MaxAnswer {
		return refuse("answer is larger than %d bytes", MaxAnswer)
	}
	if !isJSON(response.Header.Get("Content-Type")) {
		return refuse("answer is not JSON but %s (a login page in front of the manager?); it begins %s",
			quoted(response.Header.Get("Content-Type")), quoted(string(body)))
	}
	var envelope struct {
		Data json.RawMessage `json:"data"`
	}
	if err := unmarshalOne(body, &envelope); err != nil {
		return refuse("answer is not complete JSON: %v; it begins %s", err, quoted(string(body)))
	}
	if envelope.Data == nil {
		return refuse("answer has no data; it begins %s", quoted(string(body)))
	}
	snapshot, err := ParseSnapshot(envelope.Data)
	if err != nil {
		return refuse("answer is not a snapshot: %v", err)
	}
	etag := response.Header.Get("ETag")
	if !ValidETag(etag) {
		etag = "" // nothing to send back: every check-in gets the snapshot anew
	}
	return Answer{ETag: etag, Data: envelope.Data, Snapshot: snapshot}, nil
}

// statusError turns an error answer into words, with the manager's own if it
// sent them.
func statusError(response *http.Response, body []byte) error {
	refused := &RefusedError{Status: response.StatusCode}
	var envelope struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if isJSON(response.Header.Get("Content-Type")) && json.Unmarshal(body, &envelope) == nil && envelope.Error.Message != "" {
		refused.Code = envelope.Error.Code
		refused.Message = fmt.Sprintf("manager answered %s: %s", response.Status, CleanMessage(envelope.Error.Message, 512))
		return refused
	}
	refused.Message = fmt.Sprintf("manager answered %s; it begins %s", response.Status, quoted(string(body)))
	return refused
}

func isJSON(contentType string) bool {
	mediaType, _, err := mime.ParseMediaType(contentType)
	return err == nil && (mediaType == "application/json" || strings.HasSuffix(mediaType, "+json"))
}
