package checkin

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// ETag returns the strong entity tag of a snapshot's exact bytes:
// a quoted hexadecimal SHA-256.
func ETag(data []byte) string {
	sum := sha256.Sum256(data)
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

// ValidETag reports whether tag is one quoted entity tag, weak or strong, of
// the characters RFC 9110 section 8.8.3 allows, and short enough to send back.
func ValidETag(tag string) bool {
	opaque := strings.TrimPrefix(tag, "W/")
	if len(opaque) < 3 || len(opaque) > 256 || opaque[0] != '"' || opaque[len(opaque)-1] != '"' {
		return false
	}
	for _, c := range []byte(opaque[1 : len(opaque)-1]) {
		if c < 0x21 || c == '"' || c >= 0x7f {
			return false
		}
	}
	return true
}

// SameETag compares two entity tags weakly (RFC 9110 section 8.8.3.2): proxies
// that compress turn a strong tag into a weak one.
func SameETag(a, b string) bool {
	return ValidETag(a) && strings.TrimPrefix(a, "W/") == strings.TrimPrefix(b, "W/")
}

// MatchETag reports whether an If-None-Match field value lists etag. The
// comparison is weak. "*", an empty value and anything malformed match
// nothing: a wrong 304 would leave an agent on an old snapshot, a wrong 200
// only costs its bytes.
func MatchETag(ifNoneMatch, etag string) bool {
	if len(ifNoneMatch) > 4<<10 {
		return false
	}
	for tag := range strings.SplitSeq(ifNoneMatch, ",") {
		if SameETag(strings.TrimSpace(tag), etag) {
			return true
		}
	}
	return false
}
