package render

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
	"text/template"

	"opensource.internal/templates"
)

// Templates holds the templates of all managed services. They are read and
// parsed when a service is rendered for the first time, so that a pass with
// nothing to do does not pay for it. It is safe for concurrent use.
type Templates struct {
	overrides  fs.FS
	overridden []string
	nginx      templateSet
	dnsmasq    templateSet
}

// templateSet holds the parsed templates of one service.
type templateSet struct {
	once   sync.Once
	parsed *template.Template
	err    error
}

// LoadTemplates returns the embedded templates, with a file of overrides that
// has the same relative name ("nginx/nginx.conf.tmpl") in place of the
// embedded one. overrides may be nil. A file that cannot be read or parsed is
// an error only of the service that it belongs to.
func LoadTemplates(overrides fs.FS) *Templates {
	t := &Templates{overrides: overrides}
	if overrides == nil {
		return t
	}
	for _, name := range embeddedNames("*") {
		if _, err := fs.Stat(overrides, name); !errors.Is(err, fs.ErrNotExist) {
			t.overridden = append(t.overridden, name)
		}
	}
	return t
}

// Overridden returns the names of the overridden templates, sorted.
func (t *Templates) Overridden() []string { return t.overridden }

// Digest identifies the content of all templates in use: hexadecimal SHA-256.
// It parses nothing.
func (t *Templates) Digest() string {
	hash := sha256.New()
	for _, name := range embeddedNames("*") {
		text, err := t.source(name)
		if err != nil {
			text = []byte(err.Error())
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(text), text)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// embeddedNames returns the sorted names of one service's embedded templates.
func embeddedNames(service string) []string {
	// Glob fails only on a malformed pattern.
	names, _ := fs.Glob(templates.FS, service+"/*.tmpl")
	return names
}

func (t *Templates) source(name string) ([]byte, error) {
	for _, overridden := range t.overridden {
		if overridden == name {
			return fs.ReadFile(t.overrides, name)
		}
	}
	return fs.ReadFile(templates.FS, name)
}

// execute renders the template service/name.
func (t *Templates) execute(set *templateSet, name string, v view) (rendered, error) {
	set.once.Do(func() { set.parsed, set.err = t.parse(path.Dir(name)) })
	if set.err != nil {
		return rendered{}, set.err
	}
	out := &output{lines: map[int]Record{}, line: 1}
	v.writeTo(out)
	if err := set.parsed.ExecuteTemplate(out, name, v); err != nil {
		return rendered{}, fmt.Errorf("render template %s: %w", name, err)
	}
	return rendered{content: out.text.Bytes(), lines: out.lines}, nil
}

func (t *Templates) parse(service string) (*template.Template, error) {
	set := template.New(service)
	for _, name := range embeddedNames(service) {
		text, err := t.source(name)
		if err != nil {
			return nil, fmt.Errorf("read template %s: %w", name, err)
		}
		if _, err := set.New(name).Parse(string(text)); err != nil {
			return nil, fmt.Errorf("parse template %s: %w", name, err)
		}
	}
	return set, nil
}

// view is the data of a template.
type view interface{ writeTo(*output) }

// rendered is the text a template made, and the record behind each line.
type rendered struct {
	content []byte
	lines   map[int]Record
}

// output collects what a template writes. text/template writes each piece as
// it comes to it, so Begin and End know the line they are on.
type output struct {
	text  bytes.Buffer
	lines map[int]Record

	line   int
	first  int // the line Begin was called on
	record Record
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.line += bytes.Count(p, []byte{'\n'})
	return o.text.Write(p)
}

// Begin tells that the following lines come from a record. It prints nothing.
func (o *output) Begin(r Record) string {
	o.first, o.record = o.line, r
	return ""
}

// End tells that the present line is the last of the record. It prints
// nothing.
func (o *output) End() string {
	for line := o.first; line <= o.line; line++ {
		o.lines[line] = o.record
	}
	return ""
}
