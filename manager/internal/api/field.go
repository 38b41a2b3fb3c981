package api

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// field is an optional value of a body: absent, null, or a value. In a PATCH,
// absent leaves what is stored and null clears it.
type field[T any] struct {
	present bool
	null    bool
	value   T
}

// UnmarshalJSON implements json.Unmarshaler; it is called only for a field
// that is present.
func (f *field[T]) UnmarshalJSON(data []byte) error {
	f.present = true
	if f.null = bytes.Equal(data, []byte("null")); f.null {
		return nil
	}
	return json.Unmarshal(data, &f.value)
}

// Schema implements huma.SchemaProvider: the schema of T, or null.
func (field[T]) Schema(registry huma.Registry) *huma.Schema {
	schema := *huma.SchemaFromType(registry, reflect.TypeFor[T]())
	schema.Nullable = true
	return &schema
}

// set stores a present value; null stores the zero value, which is how an
// optional value that is not set is kept.
func (f field[T]) set(target *T) {
	if f.present {
		*target = f.value
	}
}

// setPointer is set for values that are kept as a pointer.
func (f field[T]) setPointer(target **T) {
	switch {
	case f.present && f.null:
		*target = nil
	case f.present:
		*target = &f.value
	}
}

// number is an optional number of an answer: null if it is not set.
func number(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

// require makes fields of a body mandatory that are optional elsewhere.
func require(schema *huma.Schema, names ...string) *huma.Schema {
	schema.Required = append(schema.Required, names...)
	return schema
}
