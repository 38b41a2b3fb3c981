package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Every answer to a GET carries a strong entity tag, made from what it says.
// With If-None-Match it becomes a 304 while that is still the same, and with
// If-Match a change or a deletion happens only to what the client has looked at
// (RFC 9110 section 13). All of this is done here, for every operation.

// tagOf is the entity tag of an answer: its own, or a digest of its body. What
// decides its own status, or is written piece by piece, has none.
func tagOf(answer any) string {
	value := reflect.ValueOf(answer).Elem()
	if own := value.FieldByName("ETag"); own.IsValid() {
		return own.String()
	}
	body := value.FieldByName("Body")
	if !body.IsValid() || body.Kind() == reflect.Func || value.FieldByName("Status").IsValid() {
		return ""
	}
	content, isBytes := body.Interface().([]byte)
	if !isBytes {
		var err error
		if content, err = json.Marshal(body.Interface()); err != nil {
			return ""
		}
	}
	return digest(content)
}

// digest is a strong entity tag of content.
func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// records are what the GETs of the API show.
type records struct {
	tags   map[string]readTag    // by path
	bodies map[reflect.Type]bool // of their answers
}

// readTag finds out the present tag of what a request is about. It gets the
// request's decoded input, which has the same parameters in its path.
type readTag func(ctx context.Context, input reflect.Value) (etag string, err error)

func (r records) add(path string, answer reflect.Type, read readTag) {
	r.tags[path] = read
	if body, has := answer.FieldByName("Body"); has {
		r.bodies[body.Type] = true
	}
}

// show reports whether some GET answers with the same body, which then has the
// same tag.
func (r records) show(answer reflect.Type) bool {
	body, has := answer.FieldByName("Body")
	return has && r.bodies[body.Type]
}

// present is the tag that a GET of the same path would have, "" if it has none.
func (r records) present(ctx context.Context, path string, input reflect.Value) (string, error) {
	read, known := r.tags[path]
	if !known {
		return "", nil
	}
	return read(ctx, input)
}

func tagBy[I, O any](show handler[I, O]) readTag {
	return func(ctx context.Context, input reflect.Value) (string, error) {
		in := new(I)
		copyPath(reflect.ValueOf(in).Elem(), input)
		out, err := show(ctx, in)
		if err != nil {
			return "", err
		}
		return tagOf(out), nil
	}
}

// copyPath copies the path parameters of one input to another.
func copyPath(to, from reflect.Value) {
	for _, field := range reflect.VisibleFields(from.Type()) {
		if _, inPath := field.Tag.Lookup("path"); inPath {
			if target := to.FieldByName(field.Name); target.IsValid() {
				target.Set(from.FieldByIndex(field.Index))
			}
		}
	}
}

// tagged adds the tag to what a GET shows, or answers that it is still the same.
func tagged[I, O any](show handler[I, O]) handler[I, O] {
	return func(ctx context.Context, in *I) (*O, error) {
		out, err := show(ctx, in)
		if err != nil || out == nil {
			return out, err
		}
		etag := tagOf(out)
		if etag == "" {
			return out, nil
		}
		exchange := exchangeOf(ctx)
		if noneMatch := readTags(exchange, "If-None-Match"); noneMatch.match(etag) {
			return nil, &Error{Status: http.StatusNotModified, Header: http.Header{"Etag": {etag}, "Cache-Control": {revalidate}}}
		}
		exchange.SetHeader("ETag", etag)
		exchange.SetHeader("Cache-Control", revalidate)
		return out, nil
	}
}

// revalidate lets nobody but the client itself keep an answer, and have it
// checked before every use.
const revalidate = "private, no-cache"

// conditional makes a write depend on If-Match and If-None-Match. The tag is
// read in the transaction of the write, so that of two clients which have
// looked at the same record one is told.
func conditional[I, O any](g group, method, path string, write handler[I, O]) handler[I, O] {
	comparable := method != http.MethodPost // what a POST makes is not what its path shows
	return func(ctx context.Context, in *I) (out *O, err error) {
		exchange := exchangeOf(ctx)
		match, noneMatch := readTags(exchange, "If-Match"), readTags(exchange, "If-None-Match")
		switch {
		case match.sent && !comparable && (!match.match("") || noneMatch.match("")):
			return nil, preconditionFailed("")
		case comparable && (match.sent || noneMatch.sent):
			err = g.store.Atomically(ctx, func(ctx context.Context) (err error) {
				etag, err := g.records.present(ctx, path, reflect.ValueOf(in).Elem())
				if err != nil {
					return err
				}
				if match.sent && !match.match(etag) || noneMatch.match(etag) {
					return preconditionFailed(etag)
				}
				out, err = write(ctx, in)
				return err
			})
		default:
			out, err = write(ctx, in)
		}
		if err == nil && out != nil && g.records.show(reflect.TypeFor[O]()) {
			exchange.SetHeader("ETag", tagOf(out))
		}
		return out, err
	}
}

// matchesItself leaves If-Match to the handler, and documents it.
func matchesItself(o *huma.Operation) {
	o.Metadata = map[string]any{ownMatch: true}
	o.Parameters = append(o.Parameters, tagHeader("If-Match", "The tag of what the client has looked at: 412 if it is another one by now"))
}

const ownMatch = "matches itself"

func preconditionFailed(etag string) error {
	refused := &Error{
		Status: http.StatusPreconditionFailed, Code: "precondition_failed",
		Message: "the record is not what you have looked at any more: get it again and decide anew",
	}
	if etag == "" {
		refused.Message = "there is no tag that could be compared here"
		return refused
	}
	refused.Header = http.Header{"Etag": {etag}}
	return refused
}

// tagList is what If-Match or If-None-Match lists.
type tagList struct {
	sent bool
	any  bool // "*"
	list []string
}

// oneTag is an entity tag; what proxies add to it when they compress is left
// out: W/ before it (nginx), or the coding at its end (Caddy, Apache). The
// manager has no weak tags and no codings of its own, so that with If-Match,
// too, the tag without these is the one it gave out.
var oneTag = regexp.MustCompile(`^\s*(?:W/)?"([\x21\x23-\x7e]*?)(?:-(?:gzip|br|zstd|deflate))?"\s*(?:,|$)`)

func readTags(ctx huma.Context, header string) tagList {
	var read tagList
	ctx.EachHeader(func(name, value string) {
		if !strings.EqualFold(name, header) {
			return
		}
		read.sent = true
		if strings.TrimSpace(value) == "*" {
			read.any = true
			return
		}
		for found := oneTag.FindStringSubmatch(value); found != nil; found = oneTag.FindStringSubmatch(value) {
			read.list = append(read.list, `"`+found[1]+`"`)
			value = value[len(found[0]):]
		}
	})
	return read
}

// match reports whether the tag is listed. What is malformed lists nothing.
func (t tagList) match(etag string) bool {
	if t.any {
		return true
	}
	for _, listed := range t.list {
		if listed == etag {
			return true
		}
	}
	return false
}

type exchangeKey struct{}

// withExchange lets the handlers' wrappers see headers that are not part of any
// one operation's input.
func withExchange(ctx huma.Context, next func(huma.Context)) {
	next(huma.WithValue(ctx, exchangeKey{}, ctx))
}

func exchangeOf(ctx context.Context) huma.Context { return ctx.Value(exchangeKey{}).(huma.Context) }
