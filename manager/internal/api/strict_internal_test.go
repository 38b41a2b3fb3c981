package api

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// What checkJSON lets pass is one value, and means the same to everybody.
func FuzzCheckJSON(f *testing.F) {
	for _, body := range []string{
		`{}`, `{"a":1}`, `{"a":1,"a":2}`, `[1,2]`, `"\ud800"`, `"\u0000"`, "\xff", "{}{}", `{"a":[{"b":{}}]}`, " {} ", `{"a":1,}`,
		strings.Repeat("[", 33) + strings.Repeat("]", 33), strings.Repeat("[", 40),
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if err := checkJSON(body); err != nil {
			refused := toError(err)
			if refused.Status != 400 && refused.Status != 422 || !utf8.ValidString(refused.Message) {
				t.Errorf("%q: %d %q", body, refused.Status, refused.Message)
			}
			return
		}
		var value any
		if err := json.Unmarshal(body, &value); err != nil {
			t.Errorf("%q was let pass: %v", body, err)
		}
		// Without two fields of one name, nothing is lost on the way.
		again, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Count(string(again), `":`), fieldCount(value); got < want {
			t.Errorf("%q has become %s", body, again)
		}
	})
}

func fieldCount(value any) (n int) {
	switch v := value.(type) {
	case map[string]any:
		for _, element := range v {
			n += 1 + fieldCount(element)
		}
	case []any:
		for _, element := range v {
			n += fieldCount(element)
		}
	}
	return n
}
