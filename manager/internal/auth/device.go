package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"

	"opensource.internal/manager/internal/store"
)

// deviceLifetime is how long a browser is remembered, in seconds.
const deviceLifetime = 180 * 24 * 60 * 60

// A browser in which a person has signed in gets a cookie that says so. It opens
// nothing: it only gives the next sign-ins of that person, in that browser, a
// budget of failures of their own, which nobody else can use up (OWASP, "Slow
// Down Online Guessing Attacks with Device Cookies"). It is signed with what is
// stored of the password: nothing more has to be kept, every manager knows it,
// and a new password makes it worthless.

// device names the browser a request comes from, if this user has signed in
// there before.
func (a *Auth) device(ctx context.Context, user store.User) (name string, known bool) {
	r := RequestOf(ctx).HTTP
	if r == nil || user.PasswordHash == "" {
		return "", false
	}
	cookie, err := r.Cookie(a.deviceCookie)
	if err != nil {
		return "", false
	}
	name, signature, _ := strings.Cut(cookie.Value, ".")
	return name, hmac.Equal([]byte(signature), []byte(signDevice(name, user)))
}

// rememberDevice lets the browser that gets the answer know that it is known.
func (a *Auth) rememberDevice(ctx context.Context, user store.User) {
	w, ok := ctx.Value(answerKey{}).(http.ResponseWriter)
	if _, known := a.device(ctx, user); known || !ok {
		return
	}
	name := rand.Text()
	session := a.sessions.Cookie
	http.SetCookie(w, &http.Cookie{
		Name: a.deviceCookie, Value: name + "." + signDevice(name, user), Path: session.Path, MaxAge: deviceLifetime,
		HttpOnly: true, Secure: session.Secure, SameSite: http.SameSiteStrictMode,
	})
}

func signDevice(name string, user store.User) string {
	mac := hmac.New(sha256.New, []byte(user.PasswordHash))
	mac.Write([]byte("device " + strconv.FormatInt(user.ID, 10) + " " + name))
	return hex.EncodeToString(mac.Sum(nil))
}

// answerKey is where the context of a request has its answer.
type answerKey struct{}

// withAnswer lets what signs somebody in set a cookie.
func withAnswer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), answerKey{}, w)))
	})
}
