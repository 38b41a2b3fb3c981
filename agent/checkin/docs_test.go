package checkin

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The page that describes this package to people.
const protocol = "../../docs/protocol.md"

func readProtocol(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(protocol)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// exampleBlock is a fenced block that is marked with the name of a file.
var exampleBlock = regexp.MustCompile("(?ms)^```json ([^\n]+)\n(.*?)^```$")

func TestProtocolShowsTheExamples(t *testing.T) {
	shown := map[string]bool{}
	for _, block := range exampleBlock.FindAllStringSubmatch(readProtocol(t), -1) {
		name, body := block[1], block[2]
		shown[name] = true
		if diff := cmp.Diff(string(example(t, name)), body); diff != "" {
			t.Errorf("%s is not testdata/%s as the page says (-file +page):\n%s", protocol, name, diff)
		}
	}
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples found: %v", err)
	}
	for _, file := range files {
		if name := filepath.Base(file); !shown[name] {
			t.Errorf("%s does not show testdata/%s: add a block that begins with ```json %s", protocol, name, name)
		}
	}
}

func TestProtocolNamesEveryField(t *testing.T) {
	page := exampleBlock.ReplaceAllString(readProtocol(t), "")
	for _, message := range []any{Request{}, Snapshot{}} {
		for _, field := range fieldsOf(reflect.TypeOf(message)) {
			// In code, alone or as the last part of a path.
			if !regexp.MustCompile("[`.]" + field + "`").MatchString(page) {
				t.Errorf("%s does not name the field %s of a %T", protocol, field, message)
			}
		}
	}
}

// fieldsOf returns the JSON names in a type and in all that it consists of.
func fieldsOf(of reflect.Type) []string {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return fieldsOf(of.Elem())
	case reflect.Struct:
	default:
		return nil
	}
	var names []string
	for i := range of.NumField() {
		if name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); name != "" {
			names = append(names, name)
			names = append(names, fieldsOf(of.Field(i).Type)...)
		}
	}
	return names
}
