package api

import (
	"context"
	"errors"
	"net/http"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

type enrollmentCreate struct {
	ByID
	Body *struct {
		ExpiresIn *string `json:"expiresIn,omitempty" doc:"How long the token may be used: 1m to 7d, 1h if not given" example:"1h"`
		Hostname  *string `json:"hostname,omitempty" doc:"The only host that may use it" example:"gateway"`
	}
}

type listEnrollments struct {
	ByID
	Paging
}

func (a *API) listEnrollments(ctx context.Context, in *listEnrollments) (*page[show.Enrollment], error) {
	rows, total, err := a.store.ListEnrollments(ctx, store.EnrollmentFilter{SiteID: in.ID}, in.options())
	if err != nil {
		return nil, err
	}
	return respondPage(rows, total, in.Paging, show.EnrollmentOf), nil
}

func (a *API) createEnrollment(ctx context.Context, in *enrollmentCreate) (*created[show.NewEnrollment], error) {
	wanted := auth.NewEnrollment{SiteID: in.ID, ExpiresIn: auth.DefaultEnrollment, CreatedBy: principal(ctx).Name}
	if in.Body != nil && in.Body.Hostname != nil {
		wanted.Hostname = *in.Body.Hostname
	}
	if in.Body != nil && in.Body.ExpiresIn != nil {
		var err error
		if wanted.ExpiresIn, err = inventory.ParseDuration(*in.Body.ExpiresIn); err != nil {
			return nil, invalidFields(map[string]string{"expiresIn": err.Error()})
		}
	}
	token, row, err := auth.CreateEnrollment(ctx, a.store, wanted)
	if err != nil {
		return nil, err
	}
	shown := show.NewEnrollment{Enrollment: show.EnrollmentOf(row), Token: token, Command: a.installCommand(token)}
	if shown.Command == nil {
		shown.Note = show.Text("PUBLIC_URL is not set, so there is no command: it is the address at which hosts reach this manager, such as https://manager.example.com")
	}
	return &created[show.NewEnrollment]{a.location("enrollments", row.ID), data[show.NewEnrollment]{shown}}, nil
}

// installCommand needs to know how hosts reach the manager. What a request calls
// it is anybody's word.
func (a *API) installCommand(token string) *string {
	if a.publicURL == nil {
		return nil
	}
	return show.Text(auth.InstallCommand(a.publicURL.String(), token))
}

func (a *API) getEnrollment(ctx context.Context, in *ByID) (*answer[show.Enrollment], error) {
	row, err := a.store.GetEnrollment(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return respond(show.EnrollmentOf(row)), nil
}

func (a *API) revokeEnrollment(ctx context.Context, in *ByID) (*empty, error) {
	_, err := a.store.RevokeEnrollment(ctx, in.ID)
	return nil, err
}

// enroll is an agent's request, which may have fields that this version does not
// know.
type enroll struct {
	Body struct {
		_        struct{} `additionalProperties:"true"`
		Token    string   `json:"token" doc:"What an administrator has made for the site: the only credential"`
		Hostname string   `json:"hostname" example:"gateway"`
		Nonce    string   `json:"nonce,omitempty" doc:"Random text, by which the same host may ask again for ten minutes if the answer was lost"`
	}
}

func (a *API) enroll(ctx context.Context, in *enroll) (*answer[checkin.Enrolled], error) {
	key, row, err := a.auth.Enroll(ctx, checkin.EnrollRequest{Token: in.Body.Token, Hostname: in.Body.Hostname, Nonce: in.Body.Nonce})
	if errors.Is(err, auth.ErrUnauthorized) {
		return nil, &Error{Status: http.StatusUnauthorized, Code: "unauthorized", Message: "this manager knows no such token: copy the whole command, or ask an administrator for a new one", Header: errUnauthorized.Header}
	}
	if err != nil {
		return nil, err
	}
	return respond(checkin.Enrolled{SiteID: *row.SiteID, Hostname: row.Hostname, Key: key}), nil
}
