package checkin

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is an optional string: the empty one is written as null, and null or
// an absent field is read as the empty one.
type Text string

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(t))
}

// Limits of what an agent reports, in bytes.
const (
	MaxMessage      = 8 << 10
	MaxDiff         = 4 << 10
	MaxProbeMessage = 512
)

// CleanMessage makes text fit for a report: at most max bytes of valid UTF-8,
// with control characters other than line feed and tab escaped, and so those
// that turn the direction of writing (a validator's words may quote anything
// that was in a file). Text that is cut keeps its end and says so, since tools
// print their verdict last.
func CleanMessage(text string, max int) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
	var out strings.Builder
	for _, r := range text {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r) {
			out.WriteString(strings.Trim(quoteRune(r), "'"))
			continue
		}
		out.WriteRune(r)
	}
	clean := out.String()
	if len(clean) <= max {
		return clean
	}
	const cut = "[cut] "
	clean = clean[len(clean)-max+len(cut):]
	for len(clean) > 0 && !utf8.RuneStart(clean[0]) {
		clean = clean[1:]
	}
	return cut + clean
}
