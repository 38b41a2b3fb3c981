package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"

	"opensource.internal/manager/internal/auth"
)

// What huma and encoding/json let pass, though it can only be a mistake: two
// values for one name, a parameter without a value, "1" for true, a compressed
// or mislabelled body, text that is not UTF-8.

// strictly refuses a request that leaves open what is meant, before huma
// decodes it.
func strictly(ctx huma.Context, next func(huma.Context)) {
	body, err := readStrictly(ctx)
	if err != nil {
		c := humagin.Unwrap(ctx)
		Refuse(c.Writer, c.Request, err)
		return
	}
	next(withBodyRead{ctx, bytes.NewReader(body)})
}

func readStrictly(ctx huma.Context) (body []byte, err error) {
	if err := checkParameters(ctx); err != nil {
		return nil, err
	}
	return requestBody(ctx)
}

// withBodyRead is a request whose body has been read.
type withBodyRead struct {
	humaContext
	body io.Reader
}

// humaContext is embedded by this name: Context is one of its methods.
type humaContext huma.Context

func (w withBodyRead) BodyReader() io.Reader { return w.body }

// Unwrap is how humagin finds its own context.
func (w withBodyRead) Unwrap() huma.Context { return w.humaContext }

// wholeNumber is the one way in which a whole number is written.
var wholeNumber = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)

// checkParameters checks the form of what the query and the path have; huma
// checks the values.
func checkParameters(ctx huma.Context) error {
	address := ctx.URL()
	query, err := url.ParseQuery(address.RawQuery)
	if err != nil {
		return invalidFields(map[string]string{"query": "is not well formed: what is special in a URL has to be percent-encoded"})
	}
	faults := map[string]string{}
	for _, parameter := range ctx.Operation().Parameters {
		switch parameter.In {
		case "path":
			if parameter.Schema.Type == huma.TypeInteger && !wholeNumber.MatchString(ctx.Param(parameter.Name)) {
				return errNoSuchID
			}
		case "query":
			if fault := checkQuery(query[parameter.Name], parameter.Schema); fault != "" {
				faults[parameter.Name] = fault
			}
		}
	}
	if len(faults) > 0 {
		return invalidFields(faults)
	}
	return nil
}

func checkQuery(values []string, schema *huma.Schema) (fault string) {
	if len(values) > 1 && schema.Type != huma.TypeArray {
		return "is given twice"
	}
	for _, value := range values {
		switch {
		case value == "":
			return "has no value: leave it out or give one"
		case !cleanText(value):
			return "is not plain text in UTF-8"
		case schema.Type == huma.TypeBoolean && value != "true" && value != "false":
			return "must be true or false"
		case schema.Type == huma.TypeInteger && !wholeNumber.MatchString(value):
			return "must be a whole number"
		}
	}
	return ""
}

// bodyTimeout is how long a body may take to arrive, and manifestBodyTimeout how
// long one with a whole site.
const (
	bodyTimeout         = 5 * time.Second
	manifestBodyTimeout = 25 * time.Second
)

// requestBody reads the body of an operation that has one. What is too large or of
// another type is refused before a byte of it is read.
func requestBody(ctx huma.Context) ([]byte, error) {
	operation, request := ctx.Operation(), auth.RequestOf(ctx.Context()).HTTP
	if operation.RequestBody == nil {
		return nil, nil
	}
	mediaType, err := mediaTypeOf(ctx, operation.RequestBody.Content)
	if err != nil {
		return nil, err
	}
	tooLarge := &Error{
		Status: http.StatusRequestEntityTooLarge, Code: "too_large",
		Message: fmt.Sprintf("the body has at most %d bytes", operation.MaxBodyBytes), Header: http.Header{"Connection": {"close"}},
	}
	if request.ContentLength > operation.MaxBodyBytes {
		return nil, tooLarge
	}
	_ = ctx.SetReadDeadline(time.Now().Add(timeFor(operation, bodyTimeout, manifestBodyTimeout))) // the server has one, too
	body, err := io.ReadAll(io.LimitReader(ctx.BodyReader(), operation.MaxBodyBytes+1))
	if err != nil {
		return nil, cutOff(err)
	}
	if int64(len(body)) > operation.MaxBodyBytes {
		return nil, tooLarge
	}
	if mediaType != jsonType || operation.Metadata[patience] != nil || len(body) == 0 && !operation.RequestBody.Required {
		return body, nil
	}
	return body, checkJSON(body)
}

func cutOff(err error) error {
	var network net.Error
	if errors.As(err, &network) && network.Timeout() {
		return &Error{Status: http.StatusRequestTimeout, Code: "request_timeout", Message: "the body did not arrive in time", Header: http.Header{"Connection": {"close"}}}
	}
	return &Error{Status: http.StatusBadRequest, Code: "bad_request", Message: "the body is not complete"}
}

const jsonType = "application/json"

// mediaTypeOf is the type of a body. One without a type is taken for JSON.
func mediaTypeOf(ctx huma.Context, allowed map[string]*huma.MediaType) (string, error) {
	if coding := ctx.Header("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return "", unsupported("the body must not be compressed")
	}
	declared := ctx.Header("Content-Type")
	if declared == "" {
		return jsonType, nil
	}
	mediaType, _, err := mime.ParseMediaType(declared)
	if _, known := allowed[mediaType]; err != nil || !known {
		names := slices.Sorted(maps.Keys(allowed))
		return "", unsupported("the body must be " + strings.Join(names, " or "))
	}
	return mediaType, nil
}

func unsupported(message string) error {
	return &Error{Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type", Message: message, Header: http.Header{"Connection": {"close"}}}
}

// maxDepth is deeper than any record.
const maxDepth = 32

// checkJSON accepts one JSON value in UTF-8 (RFC 8259), without two fields of
// one name in it, and without what no stored text may have.
func checkJSON(body []byte) error {
	switch {
	case len(body) == 0:
		return malformed("a JSON body is required")
	case bytes.HasPrefix(body, []byte("\xef\xbb\xbf")):
		return malformed("the body begins with a byte order mark: leave it out")
	case !utf8.Valid(body):
		return malformed("the body is not valid UTF-8")
	}
	reader := jsonReader{json.NewDecoder(bytes.NewReader(body))}
	reader.UseNumber()
	if err := reader.value("", 0); err != nil {
		return err
	}
	if _, err := reader.Token(); !errors.Is(err, io.EOF) {
		return malformed("the body is more than one JSON value")
	}
	return nil
}

func malformed(message string) error {
	return &Error{Status: http.StatusBadRequest, Code: "malformed_json", Message: message}
}

var errNotJSON = &Error{Status: http.StatusBadRequest, Code: "malformed_json", Message: "the body is not valid JSON"}

// jsonReader walks through a JSON value. A place in it is named like a.b[0].
type jsonReader struct{ *json.Decoder }

func (r jsonReader) value(place string, depth int) error {
	if depth > maxDepth {
		return malformed(fmt.Sprintf("the body is nested more than %d deep", maxDepth))
	}
	token, err := r.Token()
	if err != nil {
		return errNotJSON
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '{' {
			return r.object(place, depth)
		}
		return r.array(place, depth)
	case string:
		if !cleanText(token) {
			return invalidFields(map[string]string{nameOf(place): "has a character that is not valid in text"})
		}
	}
	return nil
}

func (r jsonReader) object(place string, depth int) error {
	seen := map[string]bool{}
	for r.More() {
		token, err := r.Token()
		if err != nil {
			return errNotJSON
		}
		name := token.(string) // the decoder lets nothing else pass
		inner := strings.TrimPrefix(place+"."+name, ".")
		if seen[name] {
			return invalidFields(map[string]string{nameOf(inner): "is given twice"})
		}
		seen[name] = true
		if err := r.value(inner, depth+1); err != nil {
			return err
		}
	}
	return r.end()
}

func (r jsonReader) array(place string, depth int) error {
	for n := 0; r.More(); n++ {
		if err := r.value(fmt.Sprintf("%s[%d]", place, n), depth+1); err != nil {
			return err
		}
	}
	return r.end()
}

func (r jsonReader) end() error {
	if _, err := r.Token(); err != nil {
		return errNotJSON
	}
	return nil
}

func nameOf(place string) string {
	if place == "" {
		return "body"
	}
	const longest = 100 // somebody may send a name of many kilobytes
	return place[:min(len(place), longest)]
}

// cleanText reports whether a text can be stored as it is, in every database:
// it is UTF-8, without NUL, and without U+FFFD, which is what half of a
// surrogate pair has become.
func cleanText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsAny(s, "\x00\uFFFD")
}
