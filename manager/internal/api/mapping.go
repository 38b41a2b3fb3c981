package api

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/store"
)

// toError is the one place that decides which status an error is answered
// with. What is not known here is a fault of the manager.
func toError(err error) *Error {
	var (
		ours     *Error
		invalid  *store.InvalidError
		field    *auth.FieldError
		conflict *store.ConflictError
		inUse    *store.InUseError
		tooMany  *auth.TooManyError
		host     *auth.WrongHostError
		token    *auth.EnrollmentError
	)
	switch {
	case errors.As(err, &ours):
		return ours
	case errors.Is(err, store.ErrNotFound):
		return &Error{Status: http.StatusNotFound, Code: "not_found", Message: "there is no such record"}
	case errors.As(err, &invalid):
		return invalidFields(invalid.Fields)
	case errors.As(err, &field):
		return invalidFields(map[string]string{field.Field: field.Err.Error()})
	case errors.As(err, &conflict):
		return conflicting(conflict)
	case errors.As(err, &inUse):
		return &Error{Status: http.StatusConflict, Code: "in_use", Message: inUse.Error() + "; delete these first, or with it by ?cascade=true"}
	case errors.Is(err, auth.ErrUnauthorized):
		return errUnauthorized
	case errors.Is(err, auth.ErrForbidden):
		return errForbidden
	case errors.As(err, &token):
		return refusedToken(token)
	case errors.As(err, &host):
		return &Error{Status: http.StatusForbidden, Code: "wrong_host", Message: host.Error()}
	case errors.Is(err, auth.ErrUnavailable), store.Unavailable(err):
		return unavailable(err)
	case errors.As(err, &tooMany):
		return &Error{
			Status: http.StatusTooManyRequests, Code: "too_many_requests", Message: tooMany.Error(),
			Header: http.Header{"Retry-After": {strconv.Itoa(tooMany.Seconds())}},
		}
	}
	return internalError(err)
}

func conflicting(conflict *store.ConflictError) *Error {
	answer := &Error{Status: http.StatusConflict, Code: "conflict", Message: conflict.Message}
	if conflict.Field != "" {
		answer.Fields = map[string]string{conflict.Field: conflict.Message}
	}
	if len(conflict.Holders) > 0 {
		answer.Message += " (" + strings.Join(conflict.Holders, ", ") + ")"
	}
	return answer
}

// refusedToken answers the holder of a right token of enrollment.
func refusedToken(refused *auth.EnrollmentError) *Error {
	answer := &Error{Message: refused.Message}
	switch {
	case errors.Is(refused, store.ErrEnrollmentUsed):
		answer.Status, answer.Code = http.StatusConflict, "enrollment_used"
	case errors.Is(refused, store.ErrEnrollmentExpired):
		answer.Status, answer.Code, answer.Header = http.StatusUnauthorized, "enrollment_expired", errUnauthorized.Header
	case errors.Is(refused, store.ErrEnrollmentRevoked):
		answer.Status, answer.Code, answer.Header = http.StatusUnauthorized, "enrollment_revoked", errUnauthorized.Header
	default:
		answer.Status, answer.Code = http.StatusForbidden, "wrong_host"
	}
	return answer
}

// invalidFields names every field in the message, too: not every client shows
// more than that.
func invalidFields(fields map[string]string) *Error {
	var faults []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		faults = append(faults, name+": "+fields[name])
	}
	return &Error{
		Status: http.StatusUnprocessableEntity, Code: "validation_failed",
		Message: strings.Join(faults, "; "), Fields: fields,
	}
}

// logFault logs the cause of a 5xx, which the answer does not show.
func logFault(ctx context.Context, failed *Error) {
	if failed.Status < http.StatusInternalServerError || ctx.Err() != nil {
		return
	}
	auth.RequestOf(ctx).Logger().ErrorContext(ctx, "request failed", "err", failed.cause)
}

// Refuse answers a plain HTTP request with an error, and logs its cause if it
// is a fault of the manager.
func Refuse(w http.ResponseWriter, r *http.Request, err error) {
	refused := toError(err)
	logFault(r.Context(), refused)
	refused.write(w)
}

// NoMethod answers a request whose path has other methods; the router has listed
// these in Allow. OPTIONS asks for that list (RFC 9110 section 9.3.7).
func NoMethod(w http.ResponseWriter, r *http.Request) {
	allow := strings.Split(w.Header().Get("Allow"), ", ")
	if slices.Contains(allow, http.MethodGet) {
		allow = append(allow, http.MethodHead)
	}
	allow = append(allow, http.MethodOptions)
	slices.Sort(allow)
	w.Header().Set("Allow", strings.Join(slices.Compact(allow), ", "))
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	Refuse(w, r, errNoMethod)
}

// NoRoute and CrossOrigin are the other refusals that routing makes.
func NoRoute(w http.ResponseWriter, r *http.Request)     { Refuse(w, r, errNoRoute) }
func CrossOrigin(w http.ResponseWriter, r *http.Request) { Refuse(w, r, errCrossOrigin) }

// Panicked answers a request whose handler has panicked; the cause is logged
// already.
func Panicked(w http.ResponseWriter, _ *http.Request) { internalError(nil).write(w) }
