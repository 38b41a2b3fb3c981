package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"strings"
)

// A key is written osk_PREFIX_SECRET, and a token of enrollment ose_PREFIX_SECRET, in lower-case hexadecimal: 64 random bits
// that name the key in lists and find it in the table, and 256 that are secret.
// The fixed beginning lets secret scanners recognise a leaked key.
const (
	keyMark      = "osk_"
	tokenMark    = "ose_"
	prefixLength = 16
	secretLength = 64
	keyLength    = len(keyMark) + prefixLength + 1 + secretLength
)

// digest is the SHA-256 of a whole key. A slow password hash would add nothing
// to 256 random bits and would cost every check-in.
type digest [sha256.Size]byte

// newKey draws a key or token. Only prefix and digest may be stored.
func newKey(mark string) (key, prefix string, sum digest) {
	var random [(prefixLength + secretLength) / 2]byte
	_, _ = rand.Read(random[:]) // never fails: crypto/rand ends the program instead
	text := hex.EncodeToString(random[:])
	prefix = text[:prefixLength]
	key = mark + prefix + "_" + text[prefixLength:]
	return key, prefix, sha256.Sum256([]byte(key))
}

// splitKey returns the prefix of a well-formed key, or token: both are of one
// length.
func splitKey(key, mark string) (prefix string, ok bool) {
	if len(key) != keyLength || !strings.HasPrefix(key, mark) || key[len(keyMark)+prefixLength] != '_' {
		return "", false
	}
	return key[len(keyMark) : len(keyMark)+prefixLength], true
}

// matches compares in constant time.
func (d digest) matches(other digest) bool {
	return subtle.ConstantTimeCompare(d[:], other[:]) == 1
}
