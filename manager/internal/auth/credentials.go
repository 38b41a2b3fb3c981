package auth

import (
	"net/http"
	"strings"
)

// keyIn finds the API key of a request: `Authorization: Bearer KEY`, the scheme
// in any case (RFC 9110 section 11.1), or `x-api-key: KEY`. The query is never
// looked at, since URLs end up in logs. sent is true if there is anything that
// claims to be a key; more than one claim is ambiguous and gives none.
func keyIn(h http.Header) (key string, sent bool) {
	authorization, apiKey := h["Authorization"], h["X-Api-Key"]
	switch len(authorization) + len(apiKey) {
	case 0:
		return "", false
	case 1:
	default:
		return "", true
	}
	if len(apiKey) == 1 {
		return bounded(apiKey[0]), true
	}
	scheme, token, _ := strings.Cut(authorization[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", true
	}
	return bounded(strings.Trim(token, " ")), true
}

// bounded refuses to hash what cannot be a key.
func bounded(key string) string {
	if len(key) != keyLength {
		return ""
	}
	return key
}
