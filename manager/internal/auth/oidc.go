package auth

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"opensource.internal/manager/internal/store"
)

// OIDCOptions say by which provider people may sign in, and who may do what.
type OIDCOptions struct {
	Issuer       string
	ClientID     string
	ClientSecret string // empty for a public client
	Scopes       []string
	Name         string // of the provider, for people
	CallbackURL  string // at this manager
	RoleClaim    string // the claim that lists a person's groups
	AdminGroups  []string
	ViewerGroups []string
	Admins       []string // by subject or verified address
	Viewers      []string
}

const (
	// providerTimeout bounds every request to the provider, and providerPause is
	// how long one that did not answer is left alone.
	providerTimeout = 5 * time.Second
	providerPause   = 5 * time.Second
	// providerAge is how long what it said holds, and pagePatience how long a
	// page waits for it.
	providerAge  = 10 * time.Minute
	pagePatience = 250 * time.Millisecond
	// flowLifetime is how long a person may take at the provider.
	flowLifetime = 10 * time.Minute
)

// provider is what is known of the provider. It is asked when it is needed, so
// that the manager starts without it and goes on when it is back.
type provider struct {
	options OIDCOptions
	client  *http.Client
	now     func() time.Time

	mu      sync.Mutex
	found   *oidc.Provider // the last one
	problem error          // of the last attempt
	tried   time.Time
	asking  chan struct{} // closed when the present attempt has ended; nil if there is none
}

func newProvider(o *OIDCOptions, now func() time.Time) *provider {
	if o == nil {
		return nil
	}
	return &provider{options: *o, client: &http.Client{Timeout: providerTimeout}, now: now}
}

// discover returns the provider as far as it is known, and what was wrong when
// it was last asked who it is. It is asked anew now and then, by one at a time;
// only of a provider that is not known its answer is waited for, and no longer
// than patience.
func (p *provider) discover(patience time.Duration) (*oidc.Provider, error) {
	p.mu.Lock()
	asking := p.askInTime()
	found, problem := p.found, p.problem
	p.mu.Unlock()
	if found != nil || asking == nil {
		return found, problem
	}
	select {
	case <-asking:
	case <-time.After(patience):
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found == nil && p.problem == nil {
		return nil, fmt.Errorf("ask %s who it is: no answer yet", p.options.Issuer)
	}
	return p.found, p.problem
}

// askInTime asks the provider, if it is time to, and returns what is closed when
// it was asked.
func (p *provider) askInTime() chan struct{} {
	pause := providerAge
	if p.problem != nil {
		pause = providerPause
	}
	if p.asking == nil && (p.tried.IsZero() || p.now().Sub(p.tried) >= pause) {
		p.asking = make(chan struct{})
		go p.ask(p.asking)
	}
	return p.asking
}

// ask asks the provider who it is. What was known of it stays if that fails.
func (p *provider) ask(done chan struct{}) {
	// Its keys are fetched later, too: this must not end with a request.
	found, err := oidc.NewProvider(oidc.ClientContext(context.Background(), p.client), p.options.Issuer)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tried, p.problem, p.asking = p.now(), nil, nil
	if err != nil {
		p.problem = fmt.Errorf("ask %s who it is: %w", p.options.Issuer, err)
	} else {
		p.found = found
	}
	close(done)
}

func (p *provider) oauth2(found *oidc.Provider) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.options.ClientID, ClientSecret: p.options.ClientSecret, Endpoint: found.Endpoint(),
		RedirectURL: p.options.CallbackURL, Scopes: p.options.Scopes,
	}
}

// SingleSignOn is what the sign-in page says of the provider.
type SingleSignOn struct {
	Name string // empty: there is none
	// Away says that the provider cannot be reached at the moment.
	Away bool
}

// SingleSignOn tells whether people may sign in by a provider, and whether that
// works at the moment.
func (a *Auth) SingleSignOn(ctx context.Context) SingleSignOn {
	if a.provider == nil {
		return SingleSignOn{}
	}
	_, err := a.provider.discover(pagePatience)
	if err != nil {
		RequestOf(ctx).Logger().Warn("the sign-in provider cannot be used", "err", err)
	}
	return SingleSignOn{Name: a.provider.options.Name, Away: err != nil}
}

// ErrNoProvider means that people cannot sign in by a provider: none is set, or
// it does not answer.
var ErrNoProvider = errors.New("the sign-in provider cannot be used at the moment")

// SignInError is what went wrong between leaving for the provider and coming
// back, in words for the person.
type SignInError struct {
	Message string
	Cause   error // for the log
}

func (e *SignInError) Error() string { return e.Message }

func (e *SignInError) Unwrap() error { return e.Cause }

// flow is what the browser keeps while its person is at the provider. Only this
// browser can bring the answer back: state and nonce are in no other.
type flow struct {
	State    string
	Nonce    string
	Verifier string
	Began    int64
	Wanted   string // the page that they were on their way to
}

// maxWanted is how much of a cookie that page may take.
const maxWanted = 2048

// LeaveForProvider returns the address at which a person signs in, and sets the
// cookie with which they come back. Wanted is the page that they asked for: it is
// handed back by ReturnFromProvider, and left out if it is longer than an address
// of ours is.
func (a *Auth) LeaveForProvider(w http.ResponseWriter, wanted string) (address string, err error) {
	if a.provider == nil {
		return "", ErrNoProvider
	}
	found, err := a.provider.discover(providerTimeout)
	if found == nil {
		return "", fmt.Errorf("%w: %w", ErrNoProvider, err)
	}
	begun := flow{State: oauth2.GenerateVerifier(), Nonce: oauth2.GenerateVerifier(), Verifier: oauth2.GenerateVerifier(), Began: a.provider.now().Unix()}
	if len(wanted) <= maxWanted {
		begun.Wanted = wanted
	}
	a.setFlow(w, begun)
	return a.provider.oauth2(found).AuthCodeURL(begun.State, oidc.Nonce(begun.Nonce), oauth2.S256ChallengeOption(begun.Verifier)), nil
}

func (a *Auth) setFlow(w http.ResponseWriter, f flow) {
	value := strings.Join([]string{f.State, f.Nonce, f.Verifier, fmt.Sprint(f.Began), base64.RawURLEncoding.EncodeToString([]byte(f.Wanted))}, ".")
	a.setFlowCookie(w, value, int(flowLifetime/time.Second))
}

func (a *Auth) setFlowCookie(w http.ResponseWriter, value string, maxAge int) {
	session := a.sessions.Cookie
	// Lax: the provider sends the browser back from its own site.
	http.SetCookie(w, &http.Cookie{
		Name: a.flowCookie, Value: value, Path: session.Path, MaxAge: maxAge, HttpOnly: true, Secure: session.Secure, SameSite: http.SameSiteLaxMode,
	})
}

func (a *Auth) readFlow(r *http.Request) (flow, bool) {
	cookie, err := r.Cookie(a.flowCookie)
	if err != nil {
		return flow{}, false
	}
	parts := strings.Split(cookie.Value, ".")
	if len(parts) != 5 {
		return flow{}, false
	}
	wanted, err := base64.RawURLEncoding.DecodeString(parts[4])
	if err != nil {
		return flow{}, false
	}
	f := flow{State: parts[0], Nonce: parts[1], Verifier: parts[2], Wanted: string(wanted)}
	if _, err := fmt.Sscan(parts[3], &f.Began); err != nil {
		return flow{}, false
	}
	return f, a.provider.now().Sub(time.Unix(f.Began, 0)) < flowLifetime
}

// ReturnFromProvider finishes the sign-in of a person who comes back: it checks
// that it is the same browser, what the provider says of them and which role that
// gives, and starts a session with a new id. Wanted is the page that they asked for
// before, told also if they are refused. It comes from the browser: who goes there
// checks that it is one of ours.
func (a *Auth) ReturnFromProvider(w http.ResponseWriter, r *http.Request) (wanted string, err error) {
	if a.provider == nil {
		return "", ErrNoProvider
	}
	begun, known := a.readFlow(r)
	a.setFlowCookie(w, "", -1) // good for one answer
	query := r.URL.Query()
	state := query.Get("state")
	if !known || subtle.ConstantTimeCompare([]byte(state), []byte(begun.State)) != 1 {
		return "", &SignInError{Message: "This sign-in was not begun in this browser, or too long ago. Please try again."}
	}
	if fault := query.Get("error"); fault != "" {
		return begun.Wanted, &SignInError{
			Message: "The provider did not sign you in. Please try again.",
			Cause:   fmt.Errorf("the provider says %.200q: %.500q", fault, query.Get("error_description")),
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), providerTimeout)
	defer cancel()
	who, err := a.provider.identify(ctx, begun, query.Get("code"))
	if err != nil {
		return begun.Wanted, err
	}
	_, err = a.admitIdentity(r.Context(), who)
	return begun.Wanted, err
}

// identity is who the provider says somebody is.
type identity struct {
	subject  string
	name     string
	verified string // address, folded; empty if the provider has not verified it
	groups   []string
}

// identify turns the code into a checked identity.
func (p *provider) identify(ctx context.Context, begun flow, code string) (identity, error) {
	found, err := p.discover(providerTimeout)
	if found == nil {
		return identity{}, fmt.Errorf("%w: %w", ErrNoProvider, err)
	}
	refuse := func(err error) (identity, error) {
		return identity{}, &SignInError{Message: "What the provider answered could not be accepted. Please try again; the manager's log says why.", Cause: err}
	}
	ctx = oidc.ClientContext(ctx, p.client)
	tokens, err := p.oauth2(found).Exchange(ctx, code, oauth2.VerifierOption(begun.Verifier))
	if err != nil {
		return refuse(fmt.Errorf("exchange code: %w", err))
	}
	raw, _ := tokens.Extra("id_token").(string)
	if raw == "" {
		return refuse(errors.New("there is no id token"))
	}
	token, err := found.Verifier(&oidc.Config{ClientID: p.options.ClientID, Now: p.now}).Verify(ctx, raw)
	if err != nil {
		return refuse(fmt.Errorf("verify id token: %w", err))
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(begun.Nonce)) != 1 {
		return refuse(errors.New("the id token is of another sign-in: the nonce differs"))
	}
	claims := map[string]any{}
	if err := token.Claims(&claims); err != nil {
		return refuse(fmt.Errorf("read id token: %w", err))
	}
	p.complete(ctx, found, tokens, token.Subject, claims)
	return p.identityOf(token.Subject, claims), nil
}

// complete adds claims that the provider tells only when it is asked for them.
// Those of the id token win.
func (p *provider) complete(ctx context.Context, found *oidc.Provider, tokens *oauth2.Token, subject string, claims map[string]any) {
	if _, told := claimAt(claims, p.options.RoleClaim); told && claims["email"] != nil || found.UserInfoEndpoint() == "" {
		return
	}
	info, err := found.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
	if err != nil || info.Subject != subject {
		return // what is in the id token has to do
	}
	more := map[string]any{}
	if info.Claims(&more) != nil {
		return
	}
	if claims["email"] != nil {
		delete(more, "email")
		delete(more, "email_verified")
	}
	for name, value := range more {
		if _, told := claims[name]; !told {
			claims[name] = value
		}
	}
}

func (p *provider) identityOf(subject string, claims map[string]any) identity {
	who := identity{subject: subject}
	address, _ := claims["email"].(string)
	if verified := claims["email_verified"]; verified == true || verified == "true" {
		who.verified = strings.ToLower(strings.TrimSpace(address))
	}
	for _, name := range []any{claims["preferred_username"], address, claims["name"], subject} {
		if text, _ := name.(string); who.name == "" && strings.TrimSpace(text) != "" {
			who.name = strings.TrimSpace(text)
		}
	}
	groups, _ := claimAt(claims, p.options.RoleClaim)
	switch groups := groups.(type) {
	case string:
		who.groups = []string{groups}
	case []any:
		for _, group := range groups {
			if text, ok := group.(string); ok {
				who.groups = append(who.groups, text)
			}
		}
	}
	return who
}

// claimAt finds a claim by its name, or by the path to it: realm_access.roles.
func claimAt(claims map[string]any, name string) (value any, told bool) {
	if value, told = claims[name]; told {
		return value, true
	}
	first, rest, nested := strings.Cut(name, ".")
	below, ok := claims[first].(map[string]any)
	if !nested || !ok {
		return nil, false
	}
	return claimAt(below, rest)
}

// role is what an identity may do, "" for nothing.
func (o OIDCOptions) role(who identity) Role {
	listed := func(people, groups []string) bool {
		return slices.ContainsFunc(people, func(entry string) bool {
			return entry == who.subject || who.verified != "" && strings.EqualFold(entry, who.verified)
		}) || slices.ContainsFunc(groups, func(group string) bool { return slices.Contains(who.groups, group) })
	}
	switch {
	case listed(o.Admins, o.AdminGroups):
		return RoleAdmin
	case listed(o.Viewers, o.ViewerGroups):
		return RoleViewer
	}
	return ""
}

// admitIdentity signs an identity in, with the role that it has now. Whoever has
// none gets no account, and loses the sessions of one they had.
func (a *Auth) admitIdentity(ctx context.Context, who identity) (Principal, error) {
	issuer, role := a.provider.options.Issuer, a.provider.options.role(who)
	if role == "" {
		return Principal{}, a.refuseIdentity(ctx, issuer, who)
	}
	user, err := a.store.AdmitIdentity(ctx, store.Identity{
		Issuer: issuer, Subject: who.subject, Name: titleOf(who.name, who.subject), Role: string(role), Provider: a.provider.options.Name,
	})
	if err != nil {
		return Principal{}, fmt.Errorf("sign in: %w", err)
	}
	if user.DisabledAt != nil {
		a.auditRefused(ctx, user)
		return Principal{}, &SignInError{Message: "Your account here is disabled. An administrator can enable it."}
	}
	if err := errors.Join(a.audit(ctx, store.ActionSignIn, user), a.begin(ctx, user)); err != nil {
		return Principal{}, fmt.Errorf("sign in: %w", err)
	}
	a.log.Info("signed in by provider", "user", user.Name, "client", RequestOf(ctx).Client)
	return person(user), nil
}

func (a *Auth) refuseIdentity(ctx context.Context, issuer string, who identity) error {
	user, err := a.store.UserByIdentity(ctx, issuer, who.subject)
	if err == nil {
		err = a.store.EndSessions(ctx, user.ID)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("sign in: %w", err)
	}
	a.auditRefused(ctx, user)
	a.log.Warn("sign-in refused: no role", "subject", who.subject, "client", RequestOf(ctx).Client)
	return &SignInError{Message: fmt.Sprintf(
		"You are signed in at %s as %q, but have no role here. Ask an administrator of this manager to give you one.", a.provider.options.Name, titleOf(who.name, who.subject))}
}
