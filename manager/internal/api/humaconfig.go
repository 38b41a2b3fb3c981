package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/preview"
	"opensource.internal/manager/internal/revision"
)

// huma takes the form and words of its errors and its view on letter case from
// package variables. They are the same for every API of this program.
func init() {
	huma.ValidateStrictCasing = true
	validation.MsgUnexpectedProperty = "is not a field of this record"
	validation.MsgExpectedRequiredProperty = missing + "%s"
	validation.MsgExpectedRFC3339DateTime = notATime
	validation.MsgExpectedMinimumNumber = "must be at least %v"
	validation.MsgExpectedMaximumNumber = "must be at most %v"
	validation.MsgExpectedMinLength = "must have at least %d characters"
	validation.MsgExpectedMaxLength = "must have at most %d characters"
	huma.NewErrorWithContext = fromHuma
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		return fromHuma(nil, status, message, errs...)
	}
}

// missing begins huma's word on a required field that is not there: only the
// message, not the location, names the field.
const missing = "missing: "

// notATime shows by example how a time is written.
const notATime = "must be a time such as 2026-01-31T12:00:00Z"

// humaConfig sets huma up: JSON only, no schema links in answers, and none of
// its own pages (they load scripts from elsewhere). APIs made from one config
// share one description.
func humaConfig(version, prefix string) huma.Config {
	config := huma.DefaultConfig("OpenSource Manager", version)
	config.CreateHooks = nil
	config.Components.Schemas = huma.NewMapRegistry(schemaPrefix, schemaName)
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.Formats = map[string]huma.Format{"application/json": {Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: unmarshalStrict}}
	config.RejectUnknownQueryParameters = true
	config.Servers = []*huma.Server{{URL: prefix + basePath}}
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"bearer": {Type: "http", Scheme: "bearer", Description: "An API key"},
		"apiKey": {Type: "apiKey", In: "header", Name: "x-api-key", Description: "An API key"},
	}
	config.Security = []map[string][]string{{"bearer": {}}, {"apiKey": {}}}
	return config
}

// schemaName is the name of a type in the description. Those of other packages
// are marked: the contract with the agents has a Site and a Node of its own.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.PkgPath() {
	case reflect.TypeFor[checkin.Request]().PkgPath():
		return "CheckIn" + name
	case reflect.TypeFor[preview.Preview]().PkgPath():
		return "Preview" + name
	case reflect.TypeFor[revision.Change]().PkgPath():
		return "Revision" + name
	}
	return name
}

// fromHuma turns what huma refuses into our form of error. A field is named as
// in the body or the query; the parser's own words are not repeated.
func fromHuma(ctx huma.Context, status int, message string, errs ...error) huma.StatusError {
	switch {
	case status >= http.StatusInternalServerError:
		failed := internalError(errors.Join(errs...))
		if ctx != nil {
			logFault(ctx.Context(), failed)
		}
		return failed
	case status == http.StatusUnprocessableEntity:
		return validationError(errs)
	}
	return &Error{Status: status, Code: strings.ReplaceAll(strings.ToLower(http.StatusText(status)), " ", "_"), Message: message}
}

// maxFaults is how many fields an error names: somebody may send thousands.
const maxFaults = 50

func validationError(errs []error) *Error {
	fields := map[string]string{}
	for _, err := range errs {
		if len(fields) == maxFaults {
			break
		}
		var detail *huma.ErrorDetail
		if !errors.As(err, &detail) {
			continue
		}
		place, field, _ := strings.Cut(detail.Location, ".")
		switch {
		case place == "path":
			return errNoSuchID
		case field == "":
			field = place
		}
		fault := detail.Message
		if name, ok := strings.CutPrefix(fault, missing); ok {
			field, fault = name, "is required"
		}
		if strings.HasPrefix(fault, "invalid date/time") { // and goes on with the form as Go has it
			fault = notATime
		}
		if _, named := fields[field]; !named {
			fields[field] = fault
		}
	}
	return invalidFields(fields)
}

// unmarshalStrict decodes JSON that checkJSON has let pass. When it is decoded
// to be validated, whole numbers stay exact and all other numbers keep their
// text, so that 1.0, 1e3 and what fits no integer are refused by the field's
// name.
func unmarshalStrict(data []byte, into any) error {
	untyped, ok := into.(*any)
	if !ok {
		return json.Unmarshal(data, into)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(untyped); err != nil {
		return err
	}
	*untyped = wholeNumbers(*untyped)
	return nil
}

func wholeNumbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return n
		}
	case map[string]any:
		for key, element := range v {
			v[key] = wholeNumbers(element)
		}
	case []any:
		for i, element := range v {
			v[i] = wholeNumbers(element)
		}
	}
	return value
}
