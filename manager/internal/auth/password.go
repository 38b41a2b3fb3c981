package auth

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/alexedwards/argon2id"
)

// Limits of a password, in characters and bytes. The upper one keeps a sign-in
// form from being used to hash megabytes.
const (
	minPasswordRunes = 10
	maxPasswordBytes = 1024
)

// passwordCost is the second of the settings the OWASP password storage cheat
// sheet recommends for argon2id: 19 MiB, two passes, one lane. The whole
// manager should fit in little memory, so the larger default is not used.
var passwordCost = &argon2id.Params{Memory: 19 << 10, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// absentUser is the hash that is checked for names nobody has, so that the time
// of an answer does not tell which names exist.
const absentUser = "$argon2id$v=19$m=19456,t=2,p=1$MDEyMzQ1Njc4OWFiY2RlZg$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

// errPassword is a password that is too short or too long to be set.
var errPassword = errors.New("the password must have at least 10 characters and at most 1024 bytes")

// hashPassword checks that a new password is acceptable and hashes it.
func hashPassword(password string) (string, error) {
	if utf8.RuneCountInString(password) < minPasswordRunes || len(password) > maxPasswordBytes {
		return "", errPassword
	}
	hash, err := argon2id.CreateHash(password, passwordCost)
	if err != nil {
		return "", fmt.Errorf("hash password: %w", err)
	}
	return hash, nil
}

// GeneratePassword draws a password of 130 random bits that is easy to type.
func GeneratePassword() string { return rand.Text() }

// passwords checks passwords, few at a time: each check takes 19 MiB and tens
// of milliseconds of one core.
type passwords struct{ slots chan struct{} }

func newPasswords() passwords { return passwords{slots: make(chan struct{}, 2)} }

// check compares a password with a hash; an empty hash is a user that does not
// exist and costs the same.
func (p passwords) check(ctx context.Context, password, hash string) (bool, error) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return false, fmt.Errorf("check password: %w", ctx.Err())
	}
	exists := hash != ""
	if !exists {
		hash = absentUser
	}
	if len(password) > maxPasswordBytes {
		password = ""
	}
	match, err := argon2id.ComparePasswordAndHash(password, hash)
	if err != nil {
		return false, fmt.Errorf("check password: %w", err)
	}
	return match && exists, nil
}
