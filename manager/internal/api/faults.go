package api

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/live"
)

// A fault is one kind of error that the API answers with, as the description
// has it.
type fault struct {
	code   string
	status int
	when   string // a sentence without its full stop
	// shown is an example of the message; that of invalid fields repeats them.
	shown  string
	fields map[string]string
}

// faults are all of them. A code that is answered and not listed here, or not
// documented for its operation, fails the tests.
var faults = []fault{
	{code: "malformed_json", status: 400, when: "The body is not one JSON value in UTF-8", shown: errNotJSON.Message},
	{code: "malformed_manifest", status: 400, when: "The body is neither YAML nor JSON that could be read; the message says where", shown: "manifest:3:8: sequence end token ']' not found"},
	{code: "bad_request", status: 400, when: "The body ends before its announced length", shown: "the body is not complete"},
	{code: "unauthorized", status: 401, when: "There are no valid credentials", shown: errUnauthorized.Message},
	{code: "enrollment_expired", status: 401, when: "The token of enrollment has expired", shown: "this token expired at 2026-03-01T09:30:00Z; ask an administrator for a new one"},
	{code: "enrollment_revoked", status: 401, when: "The token of enrollment was revoked", shown: "this token was revoked; ask an administrator for a new one"},
	{code: "forbidden", status: 403, when: "The credentials do not allow this", shown: errForbidden.Message},
	{code: "wrong_host", status: 403, when: "The key or token is for another host: enroll this host with a token of its own", shown: (&auth.WrongHostError{Want: "gateway", Got: "web"}).Error()},
	{code: "cross_origin", status: 403, when: "The request was sent by a browser for a page of another origin", shown: errCrossOrigin.Message},
	{code: "not_found", status: 404, when: "There is no such record", shown: "there is no such record"},
	{code: "site_not_found", status: 404, when: "There is no such site", shown: "there is no site 7: check SITE_ID"},
	{code: "method_not_allowed", status: 405, when: "The path does not have that method; Allow lists what it has", shown: errNoMethod.Message},
	{code: "request_timeout", status: 408, when: "The body took longer than five seconds to arrive, or a manifest longer than 25", shown: "the body did not arrive in time"},
	{
		code: "conflict", status: 409, when: "A value is taken, or the records stand against it",
		shown: `the name "lab" is already in use (site "lab")`, fields: map[string]string{"name": `the name "lab" is already in use`},
	},
	{code: "enrollment_used", status: 409, when: "The token of enrollment was used; the message says by which host", shown: `this token was used by "gateway" at 2026-03-01T09:30:00Z; ask an administrator for a new one`},
	{code: "in_use", status: 409, when: "Other records depend on this one; the message names them", shown: `node "pve1" is in use by container "web"; delete these first, or with it by ?cascade=true`},
	{code: "precondition_failed", status: 412, when: "The record is not what If-Match names any more", shown: preconditionFailed(`"tag"`).Error()},
	{code: "too_large", status: 413, when: "The body is too large", shown: "the body has at most 16384 bytes"},
	{code: "unsupported_media_type", status: 415, when: "The body is not application/json, or is compressed", shown: "the body must be application/json"},
	{
		code: "validation_failed", status: 422, when: "Values are not valid; fields says which, and why",
		fields: map[string]string{"sort": `cannot sort by "colour": one of id, name, createdAt, updatedAt`},
	},
	{code: "too_many_requests", status: 429, when: "Too many attempts; Retry-After says when to try again", shown: (&auth.TooManyError{Wait: 30 * time.Second}).Error()},
	{code: "internal_error", status: 500, when: "A fault of the manager; its log says why", shown: internalError(nil).Message},
	{code: "no_live_stream", status: 503, when: "Too many listen to changes, or the manager is about to stop; Retry-After says when to try again", shown: live.ErrFull.Error()},
	{code: "unavailable", status: 503, when: "The database is locked, full or gone; Retry-After says when to try again", shown: unavailable(nil).Message},
}

// An option changes an operation before it is registered.
type option func(*huma.Operation)

// mayFail documents errors that an operation has beyond those which its types
// and method imply.
func mayFail(codes ...string) option {
	return func(o *huma.Operation) { addFaults(o, codes) }
}

// documentFaults names every error that follows from the form of an operation:
// those of its group, of its method, and of what its input has.
func documentFaults(o *huma.Operation, group []string, input reflect.Type) {
	codes := slices.Concat(group, []string{"validation_failed", "internal_error", "unavailable"})
	if o.Method != http.MethodGet {
		codes = append(codes, "cross_origin", "precondition_failed")
	}
	if hasTag(input, "path") {
		codes = append(codes, "not_found")
	}
	if hasField(input, "Body") || hasField(input, "RawBody") {
		codes = append(codes, "malformed_json", "bad_request", "request_timeout", "too_large", "unsupported_media_type", "conflict")
	}
	if hasField(input, "Cascade") {
		codes = append(codes, "in_use")
	}
	addFaults(o, codes)
}

func hasField(t reflect.Type, name string) bool {
	_, has := t.FieldByName(name)
	return has
}

func hasTag(t reflect.Type, tag string) bool {
	return slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
		_, has := f.Tag.Lookup(tag)
		return has
	})
}

// addFaults adds errors to the description of an operation: one response per
// status, with an example for every code.
func addFaults(o *huma.Operation, codes []string) {
	if o.Responses == nil {
		o.Responses = map[string]*huma.Response{}
	}
	for _, code := range codes {
		known := slices.IndexFunc(faults, func(f fault) bool { return f.code == code })
		if known < 0 {
			panic("no such fault: " + code) // at the start, by whoever registers the operation
		}
		faults[known].addTo(o.Responses)
	}
}

func (f fault) addTo(responses map[string]*huma.Response) {
	status := strconv.Itoa(f.status)
	response := responses[status]
	if response == nil {
		response = &huma.Response{
			Description: http.StatusText(f.status), Headers: f.headers(),
			Content: map[string]*huma.MediaType{"application/json": {
				Schema: &huma.Schema{Ref: schemaPrefix + faultSchema}, Examples: map[string]*huma.Example{},
			}},
		}
		responses[status] = response
	}
	response.Content["application/json"].Examples[f.code] = &huma.Example{
		Summary: f.when, Value: errorBody{errorDetail{Code: f.code, Message: f.message(), Fields: f.fields}},
	}
}

// faultSchema is the name of the schema of errorBody.
const faultSchema = "ErrorBody"

func (f fault) message() string {
	if f.shown != "" {
		return f.shown
	}
	return invalidFields(maps.Clone(f.fields)).Message
}

func (f fault) headers() map[string]*huma.Param {
	text := &huma.Schema{Type: huma.TypeString}
	switch f.status {
	case http.StatusUnauthorized:
		return map[string]*huma.Param{"WWW-Authenticate": {Description: "How to authenticate", Schema: text}}
	case http.StatusPreconditionFailed:
		return map[string]*huma.Param{"ETag": {Description: "The present tag", Schema: text}}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return map[string]*huma.Param{"Retry-After": {Description: "Seconds to wait", Schema: &huma.Schema{Type: huma.TypeInteger}}}
	}
	return nil
}

// documentTags describes the headers of conditional requests. What decides its
// own status is shown without a tag.
func documentTags(o *huma.Operation, ownStatus bool) {
	switch o.Method {
	case http.MethodGet:
		if ownStatus {
			return
		}
		o.Parameters = append(o.Parameters, tagHeader("If-None-Match", "Tags of what the client holds: 304 if it is still the same"))
		o.Responses["304"] = &huma.Response{Description: "What the client holds is still the same"}
	case http.MethodPatch, http.MethodPut, http.MethodDelete:
		o.Parameters = append(o.Parameters, tagHeader("If-Match", "The tag of the record as the client has looked at it: 412 if it is another one by now"))
	}
}

func tagHeader(name, doc string) *huma.Param {
	return &huma.Param{
		Name: name, In: "header", Description: doc, Schema: &huma.Schema{Type: huma.TypeString}, Example: `"5b6e1f0c6f1d4b0f9d3c2a1b0e9f8d7c"`,
	}
}
