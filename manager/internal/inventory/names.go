package inventory

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/idna"

	"opensource.internal/agent/checkin"
)

// idnaProfile maps what people type to the ASCII form that browsers look up
// (UTS #46, non-transitional), as strictly as the package can.
var idnaProfile = idna.New(
	idna.MapForLookup(),
	idna.Transitional(false),
	idna.StrictDomainName(true),
	idna.ValidateLabels(true),
	idna.CheckHyphens(true),
	idna.CheckJoiners(true),
	idna.BidiRule(),
)

// FoldDomain returns the stored form of a domain name: lower case, IDNA ASCII,
// no trailing dot. What can look like another name is refused.
func FoldDomain(s string) (string, error) {
	if isASCII(s) && !strings.Contains(strings.ToLower(s), "xn--") {
		return checkin.ParseDomain(s)
	}
	if r := invisible(s); r != 0 {
		return "", fmt.Errorf("%s is not a domain name: the character U+%04X cannot be seen", quoted(s), r)
	}
	ascii, err := idnaProfile.ToASCII(strings.TrimSuffix(s, "."))
	if err != nil {
		return "", fmt.Errorf("%s is not a domain name: not valid in an internationalised name", quoted(s))
	}
	readable, err := idnaProfile.ToUnicode(ascii)
	if err != nil {
		return "", fmt.Errorf("%s is not a domain name: not valid in an internationalised name", quoted(s))
	}
	for label := range strings.SplitSeq(readable, ".") {
		if err := checkScripts(label); err != nil {
			return "", fmt.Errorf("%s is not a domain name: %w", quoted(s), err)
		}
	}
	return checkin.ParseDomain(ascii)
}

// FoldSearch returns the form a name would be stored in, to look for it. What
// is no name stays as it is, and finds nothing.
func FoldSearch(name string) string {
	if folded, err := FoldDomain(name); err == nil {
		return folded
	}
	return strings.ToLower(name)
}

// CheckFullName checks the length of a complete name (RFC 1035 section 2.3.4).
func CheckFullName(name string) error {
	if len(name) > 253 {
		return fmt.Errorf("the full name %s has %d characters, more than 253", quoted(name), len(name))
	}
	return nil
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}

// invisible returns the first character that IDNA would drop or that shows
// nothing: joiners, soft hyphens, direction marks, variation selectors.
func invisible(s string) rune {
	for _, r := range s {
		if unicode.In(r, unicode.Cf, unicode.Cc, unicode.Zs, unicode.Variation_Selector) {
			return r
		}
	}
	return 0
}

// together lists the scripts that are written in one word (UTS #39 section
// 5.2, "highly restrictive", without Latin beside another script: that is what
// look-alikes are made of).
var together = [][]string{
	{"Han", "Hiragana", "Katakana"},
	{"Han", "Bopomofo"},
	{"Han", "Hangul"},
}

// checkScripts refuses a label that mixes scripts, such as a Cyrillic letter
// among Latin ones, or that has anything but letters, marks, digits, hyphens.
func checkScripts(label string) error {
	scripts := map[string]bool{}
	for _, r := range label {
		if r != '-' && !unicode.In(r, unicode.L, unicode.M, unicode.Nd) {
			return fmt.Errorf("the character U+%04X is not a letter or digit", r)
		}
		if script := scriptOf(r); script != "" {
			scripts[script] = true
		}
	}
	if len(scripts) <= 1 {
		return nil
	}
	for _, set := range together {
		matched := 0
		for _, script := range set {
			if scripts[script] {
				matched++
			}
		}
		if matched == len(scripts) {
			return nil
		}
	}
	return errors.New("a label mixes letters of several scripts")
}

// scriptOf names a letter's script; those shared by all scripts have none.
func scriptOf(r rune) string {
	if r <= unicode.MaxASCII && !unicode.IsLetter(r) || unicode.In(r, unicode.Common, unicode.Inherited) {
		return ""
	}
	for name, table := range unicode.Scripts {
		if unicode.Is(table, r) {
			return name
		}
	}
	return "unknown"
}

// quoted shows a refused value in an error: escaped, and cut to a sane length.
func quoted(s string) string {
	if len(s) > 80 {
		s = s[:80] + "…"
	}
	return strconv.QuoteToASCII(s)
}
