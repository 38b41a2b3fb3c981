package api

import (
	"encoding/json"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// Error is an answer that is no success. Its text is for the client; the cause
// of a fault of ours is logged and never part of it.
type Error struct {
	Status  int
	Code    string
	Message string
	// Fields says per JSON field what is wrong with it.
	Fields map[string]string
	// Header is added to the answer.
	Header http.Header

	cause error
}

// The errors that need no further words.
var (
	errUnauthorized = &Error{
		Status: http.StatusUnauthorized, Code: "unauthorized", Message: "valid credentials are required: an API key as bearer token or in x-api-key, or a session",
		Header: http.Header{"Www-Authenticate": {`Bearer realm="opensource-manager"`}},
	}
	errForbidden   = &Error{Status: http.StatusForbidden, Code: "forbidden", Message: "these credentials do not allow this"}
	errNoRoute     = &Error{Status: http.StatusNotFound, Code: "not_found", Message: "there is no such path"}
	errNoSuchID    = &Error{Status: http.StatusNotFound, Code: "not_found", Message: "there is no such record: ids are positive whole numbers"}
	errNoMethod    = &Error{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Message: "this path does not have that method"}
	errCrossOrigin = &Error{Status: http.StatusForbidden, Code: "cross_origin", Message: "the request came from a page of another origin; if this is the manager's own page, PUBLIC_URL does not match the browser's address"}
)

// internalError hides a cause that is not the client's business.
func internalError(cause error) *Error {
	return &Error{Status: http.StatusInternalServerError, Code: "internal_error", Message: "the manager could not do this; its log says why", cause: cause}
}

func (e *Error) Error() string { return e.Message }

// Unwrap gives the cause to whoever logs.
func (e *Error) Unwrap() error { return e.cause }

// GetStatus implements huma.StatusError.
func (e *Error) GetStatus() int { return e.Status }

// GetHeaders implements huma.HeadersError.
func (e *Error) GetHeaders() http.Header { return e.Header }

// MarshalJSON writes the one form of error this API has.
func (e *Error) MarshalJSON() ([]byte, error) {
	return json.Marshal(errorBody{errorDetail{e.Code, e.Message, e.Fields}})
}

// Schema implements huma.SchemaProvider: the description of the JSON above.
func (*Error) Schema(registry huma.Registry) *huma.Schema {
	return huma.SchemaFromType(registry, reflect.TypeFor[errorBody]())
}

type errorBody struct {
	Error errorDetail `json:"error"`
}

type errorDetail struct {
	Code    string            `json:"code" example:"validation_failed"`
	Message string            `json:"message"`
	Fields  map[string]string `json:"fields,omitempty" doc:"What is wrong, by field"`
}

// write answers a plain HTTP request with the error.
func (e *Error) write(w http.ResponseWriter) {
	for name, values := range e.Header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(e.Status)
	_ = json.NewEncoder(w).Encode(e) // the client is gone if this fails
}
