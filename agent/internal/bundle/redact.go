package bundle

import (
	"bytes"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// removed stands in the place of what must not be told. It needs no quoting in
// JSON, in nginx's files and in templates.
const removed = "[removed]"

// Redactor takes secrets out of text: those it was told of, and whatever looks
// like one. It rather removes too much: an archive is sent to strangers.
type Redactor struct {
	known []string // the longest first
	rules []rule

	privateKey             *regexp.Regexp
	jsonString, jsonSecret *regexp.Regexp
}

// shortest is the length of a secret, in bytes, that is looked for everywhere.
// Shorter ones would take ordinary words with them.
const shortest = 6

// NewRedactor returns a redactor for the given secrets of this host.
func NewRedactor(secrets ...string) *Redactor {
	// They are not compiled before they are needed: every pass is a process.
	r := &Redactor{
		rules: rules(),
		// A PEM block, also one that is cut off.
		privateKey: regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`),
		jsonString: regexp.MustCompile(`"(?:[^"\\]|\\.)*"`),
		jsonSecret: regexp.MustCompile(`(?i)("(?:` + secretName + `|` + headerName + `)"\s*:\s*)"(?:[^"\\]|\\.)*"`),
	}
	for _, secret := range secrets {
		if len(secret) < shortest {
			continue
		}
		quoted := strconv.Quote(secret)
		r.known = append(r.known, secret, url.QueryEscape(secret), url.PathEscape(secret), quoted[1:len(quoted)-1])
	}
	slices.SortFunc(r.known, func(a, b string) int { return len(b) - len(a) })
	r.known = slices.Compact(r.known)
	return r
}

// rule replaces what an expression finds in a line.
type rule struct {
	// needs are words of which one is in every line that the expression can
	// find something in, in lower case: to look for them takes a hundredth of
	// the time.
	needs      []string
	expression *regexp.Regexp
	with       string
	unless     func(match []byte) bool // nil: never
}

const (
	secretName = `[\w.-]*(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|private[_-]?key|credential)[\w.-]*`
	headerName = `(?:proxy-)?authorization|(?:set-)?cookie2?|x-api-key|x-access-token|x-auth-request-access-token`
)

// rules returns what a secret looks like, in the order in which it is looked
// for. Values that begin with $ are nginx's variables: they hold nothing.
func rules() []rule {
	re := regexp.MustCompile
	headers := []string{"authorization", "cookie", "x-api-key", "access-token"}
	return []rule{
		// Keys of this product.
		{[]string{"osk_"}, re(`osk_[0-9A-Za-z_-]+`), removed, nil},
		// Headers, as a log shows them and as curl is given them.
		{headers, re(`(?i)\b(` + headerName + `)(["']?[ \t]*[:=][ \t]*)[^\r\n]+`), "${1}${2}" + removed, onlyVariable},
		// Headers, as nginx's files set them.
		{headers, re(`(?i)\b((?:proxy_set_header|grpc_set_header|add_header|fastcgi_param|uwsgi_param|more_set_\w*headers)\s+["']?(?:` +
			headerName + `)["']?\s+)[^\s$;][^;\r\n]*`), "${1}" + removed, setsNothing},
		// Credentials with their scheme, anywhere.
		{
			[]string{"bearer", "basic", "digest", "negotiate"},
			re(`(?i)\b(bearer|basic|digest|negotiate)\s+[A-Za-z0-9._~+/=-]{8,}`), "${1} " + removed, isProse,
		},
		// Users and passwords in addresses.
		{[]string{"@"}, re(`([A-Za-z][A-Za-z0-9+.-]*://)[^/\s"'<>@]*@`), "${1}" + removed + "@", nil},
		// Settings whose name says it.
		{
			[]string{"passw", "passphrase", "secret", "token", "key", "credential"},
			re(`(?i)\b(` + secretName + `)(["']?[ \t]*[:=][ \t]*)("[^"\r\n]*"|'[^'\r\n]*'|[^\s,;&"']+)`), "${1}${2}" + removed, namesFile,
		},
		// Parameters of addresses, and sign-in cookies without their header.
		{[]string{"?", "&"}, re(`(?i)([?&](?:code|state|ticket|session|auth|sig|signature|key)=)[^&\s"']+`), "${1}" + removed, nil},
		{[]string{"_oauth2_proxy"}, re(`(_oauth2_proxy[\w-]*=)[^;\s"']+`), "${1}" + removed, nil},
		// Signed tokens (RFC 7519).
		{[]string{"eyj"}, re(`\beyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*`), removed, nil},
	}
}

// onlyVariable knows `map $cookie = $x` and the like.
func onlyVariable(match []byte) bool {
	_, value, _ := bytes.Cut(match, []byte("="))
	return bytes.HasPrefix(bytes.TrimSpace(value), []byte("$"))
}

// setsNothing knows headers that are emptied, or set to a variable in quotes.
func setsNothing(match []byte) bool {
	fields := bytes.Fields(match)
	value := fields[2]
	return bytes.Equal(value, []byte(`""`)) || bytes.HasPrefix(value, []byte(`"$`)) || bytes.HasPrefix(value, []byte(`'$`))
}

// isProse knows "basic authentication".
func isProse(match []byte) bool {
	token := bytes.Fields(match)[1]
	return bytes.Equal(bytes.ToLower(token), token) && !bytes.ContainsAny(token, "0123456789=+/_")
}

// namesFile knows settings that say where a secret is.
func namesFile(match []byte) bool {
	return bytes.HasPrefix(bytes.ToUpper(match), []byte("API_KEY_FILE"))
}

// Text returns text without secrets.
func (r *Redactor) Text(text []byte) []byte {
	if bytes.Contains(text, []byte("PRIVATE KEY-----")) {
		text = r.privateKey.ReplaceAll(text, []byte("[private key removed]"))
	}
	for _, secret := range r.known {
		text = bytes.ReplaceAll(text, []byte(secret), []byte(removed))
	}
	var out bytes.Buffer
	out.Grow(len(text))
	for line := range bytes.Lines(text) {
		out.Write(r.line(line))
	}
	return out.Bytes()
}

func (r *Redactor) line(line []byte) []byte {
	lower := bytes.ToLower(line)
	for _, rule := range r.rules {
		if slices.ContainsFunc(rule.needs, func(word string) bool { return bytes.Contains(lower, []byte(word)) }) {
			line = rule.apply(line)
		}
	}
	return line
}

func (r rule) apply(text []byte) []byte {
	return r.expression.ReplaceAllFunc(text, func(match []byte) []byte {
		if r.unless != nil && r.unless(match) {
			return match
		}
		return r.expression.ReplaceAll(match, []byte(r.with))
	})
}

// JSON is Text for the strings in JSON, which stays JSON, and stays what it is
// to the byte if there is no secret in it. What is no JSON is text.
func (r *Redactor) JSON(content []byte) []byte {
	if !json.Valid(content) {
		return r.Text(content)
	}
	content = r.jsonSecret.ReplaceAll(content, []byte(`${1}"`+removed+`"`))
	return r.jsonString.ReplaceAllFunc(content, func(literal []byte) []byte {
		var text string
		if err := json.Unmarshal(literal, &text); err != nil {
			return literal
		}
		clean := string(r.Text([]byte(text)))
		if clean == text {
			return literal
		}
		var out strings.Builder
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(clean) // a string can always be encoded
		return []byte(strings.TrimSuffix(out.String(), "\n"))
	})
}

// File redacts by the kind of file that a name tells.
func (r *Redactor) File(name string, content []byte) []byte {
	if strings.HasSuffix(name, ".json") {
		return r.JSON(content)
	}
	return r.Text(content)
}
