package servertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Description is the OpenAPI description that a manager gives of itself, with
// what is needed to hold answers against it.
type Description struct {
	Operations []Operation

	mu       sync.Mutex // guards compiler
	compiler *jsonschema.Compiler
}

// Operation is one method of one path.
type Operation struct {
	Method, Path string // as described: /sites/{id}
	ID           string `json:"operationId"`
	Description  string
	Security     *[]map[string][]string
	Parameters   []struct {
		Name, In, Description string
		Required              bool
		Schema                json.RawMessage
		Example               json.RawMessage
	}
	RequestBody *struct {
		Required bool
		Content  map[string]Media
	}
	Responses map[string]struct {
		Description string
		Headers     map[string]json.RawMessage
		Content     map[string]Media
	}

	pattern *regexp.Regexp
}

// Media is a body of one type.
type Media struct {
	Schema   json.RawMessage
	Example  json.RawMessage
	Examples map[string]struct{ Value json.RawMessage }
}

// The description is the same for every manager of a test program.
var described = struct {
	sync.Mutex
	*Description
}{}

// Describe reads the manager's description of its API.
func (s *Server) Describe(t testing.TB) *Description {
	t.Helper()
	described.Lock()
	defer described.Unlock()
	if described.Description == nil {
		answer := s.send(t, http.MethodGet, "/api/v1/openapi.json", nil, http.Header{"X-Api-Key": {s.AdminKey}})
		description, err := readDescription(answer.Body)
		if err != nil {
			t.Fatalf("GET /openapi.json: %d: %v", answer.Status, err)
		}
		described.Description = description
	}
	return described.Description
}

func readDescription(document []byte) (*Description, error) {
	var description struct {
		Paths map[string]map[string]Operation
	}
	if err := json.Unmarshal(document, &description); err != nil {
		return nil, err
	}
	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return nil, err
	}
	d := &Description{compiler: jsonschema.NewCompiler()}
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource("openapi.json", whole); err != nil {
		return nil, err
	}
	for path, methods := range description.Paths {
		for method, operation := range methods {
			operation.Method, operation.Path = strings.ToUpper(method), path
			operation.pattern = regexp.MustCompile("^" + regexp.MustCompile(`\\\{[^/]+\\\}`).ReplaceAllString(regexp.QuoteMeta(path), "[^/]+") + "$")
			d.Operations = append(d.Operations, operation)
		}
	}
	slices.SortFunc(d.Operations, func(a, b Operation) int {
		return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method)
	})
	return d, nil
}

// Find is the operation that a request is for, nil if none is described.
func (d *Description) Find(method, path string) *Operation {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for i, operation := range d.Operations {
		if operation.Method == method && operation.pattern.MatchString(path) {
			return &d.Operations[i]
		}
	}
	return nil
}

// Validate holds a value against a schema of the description, which is named by
// the way to it: "paths", "/sites", "get", …
func (d *Description) Validate(value []byte, way ...string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	place := ""
	for _, step := range way {
		place += "/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(step))
	}
	schema, err := d.compiler.Compile("openapi.json#" + place)
	if err != nil {
		return fmt.Errorf("schema of %v: %w", way, err)
	}
	decoded, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return err
	}
	return schema.Validate(decoded)
}

// Check says how an answer differs from what is described for its operation.
func (d *Description) Check(o *Operation, answer Answer) error {
	status := strconv.Itoa(answer.Status)
	response, documented := o.Responses[status]
	if !documented {
		return fmt.Errorf("status %d is not documented for it%s", answer.Status, howTo(answer))
	}
	for name := range response.Headers {
		if answer.Header.Get(name) == "" && name != "ETag" && name != "Location" {
			return fmt.Errorf("status %d has no header %s", answer.Status, name)
		}
	}
	if len(response.Content) == 0 {
		if len(answer.Body) > 0 {
			return fmt.Errorf("status %d is documented without a body", answer.Status)
		}
		return nil
	}
	contentType, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	media, documented := response.Content[contentType]
	switch {
	case !documented:
		return fmt.Errorf("status %d: content type %q is not documented", answer.Status, contentType)
	case contentType != "application/json":
		return nil
	}
	if answer.Status >= 400 && len(media.Examples) > 0 {
		var fault struct{ Error struct{ Code string } }
		_ = json.Unmarshal(answer.Body, &fault) // held against the schema below
		if _, documented := media.Examples[fault.Error.Code]; !documented {
			return fmt.Errorf("status %d: the code %q is not documented for it%s", answer.Status, fault.Error.Code, howTo(answer))
		}
	}
	return d.Validate(answer.Body, "paths", o.Path, strings.ToLower(o.Method), "responses", status, "content", contentType, "schema")
}

func howTo(answer Answer) string {
	return fmt.Sprintf(": add mayFail to its line in internal/api/routes.go (docs/development/api.md), or answer something else than %.300s", answer.Body)
}

// check holds an answer of the API against its description.
func (s *Server) check(t testing.TB, method, path string, answer Answer) {
	t.Helper()
	address, err := url.Parse(path)
	if err != nil || method == http.MethodHead || answer.Status == http.StatusRequestHeaderFieldsTooLarge {
		return // the last is answered by net/http, before there is a request
	}
	below, isAPI := strings.CutPrefix(address.Path, "/api/v1")
	if !isAPI {
		return
	}
	description := s.Describe(t)
	operation := description.Find(method, below)
	if operation == nil {
		return
	}
	if err := description.Check(operation, answer); err != nil {
		fault := fmt.Sprintf("%s %s: %v", operation.Method, operation.Path, err)
		if _, told := s.told.LoadOrStore(fault, true); !told {
			t.Error(fault)
		}
	}
}
