package auth

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"

	"opensource.internal/manager/internal/store"
)

// flushInterval is how long a key's use may stay unstored.
const flushInterval = time.Minute

// lastFlush bounds the flush at the end: the manager stops in well under a
// second, and only the date of a key's last use is lost otherwise.
const lastFlush = 200 * time.Millisecond

// Options are what New needs.
type Options struct {
	Store *store.Store
	Log   *slog.Logger
	// TrustedProxies are believed when they say who is asking.
	TrustedProxies []netip.Prefix
	// LoopbackSite may check in over loopback without a key; 0 is none.
	LoopbackSite int64
	// Secure marks cookies for TLS only; Prefix is the path of PUBLIC_URL.
	Secure bool
	Prefix string
	// OIDC is nil if people sign in with passwords only.
	OIDC *OIDCOptions
	// Now is time.Now if nil.
	Now func() time.Time
}

// Auth knows who may do what. It is safe for concurrent use.
type Auth struct {
	store        *store.Store
	log          *slog.Logger
	proxies      Proxies
	loopbackSite int64
	keys         *keyring
	sessions     *scs.SessionManager
	passwords    passwords
	limiter      *limiter
	deviceCookie string
	flowCookie   string
	provider     *provider                                  // nil if there is none
	wait         func(context.Context, time.Duration) error // sleep
}

// New returns an Auth that works on a store.
func New(o Options) *Auth {
	if o.Now == nil {
		o.Now = time.Now
	}
	sessions := newSessions(o.Store, o.Secure, o.Prefix)
	return &Auth{
		store:        o.Store,
		log:          o.Log,
		proxies:      o.TrustedProxies,
		loopbackSite: o.LoopbackSite,
		keys:         &keyring{store: o.Store, now: o.Now},
		sessions:     sessions,
		passwords:    newPasswords(),
		limiter:      newLimiter(o.Now),
		deviceCookie: strings.Replace(sessions.Cookie.Name, "session", "device", 1),
		flowCookie:   strings.Replace(sessions.Cookie.Name, "session", "sign_in", 1),
		provider:     newProvider(o.OIDC, o.Now),
		wait:         sleep,
	}
}

// Run stores the use of keys and drops expired sessions now and then, and once
// more when the context ends.
func (a *Auth) Run(ctx context.Context) {
	ticker := time.NewTicker(flushInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			a.tidy(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastFlush)
			defer cancel()
			a.tidy(last)
			return
		}
	}
}

func (a *Auth) tidy(ctx context.Context) {
	err := errors.Join(a.keys.flush(ctx), a.store.DeleteExpiredSessions(ctx, time.Now().UTC()))
	if err != nil && ctx.Err() == nil {
		a.log.Warn("tidy keys and sessions", "err", err)
	}
}

// Client is the address of who is asking, for logs and limits.
func (a *Auth) Client(r *http.Request) netip.Addr { return a.proxies.Client(r) }

// RequestID is the id that a trusted proxy gave a request, "" if none.
func (a *Auth) RequestID(r *http.Request) string { return a.proxies.RequestID(r) }

// Sessions wraps what people use with a browser: it reads the session cookie
// and sets it when the session has changed.
func (a *Auth) Sessions(next http.Handler) http.Handler {
	return a.sessions.LoadAndSave(withAnswer(next))
}

func (a *Auth) hasSessionCookie(r *http.Request) bool {
	_, err := r.Cookie(a.sessions.Cookie.Name)
	return err == nil
}

// OnSessionError sets the answer to a session that cannot be loaded or stored.
func (a *Auth) OnSessionError(answer func(http.ResponseWriter, *http.Request, error)) {
	a.sessions.ErrorFunc = answer
}

// Authenticate says who sent a request: the holder of a key or the person of a
// session. A bad key is refused even beside a good session.
func (a *Auth) Authenticate(r *http.Request) (Principal, error) {
	if key, sent := keyIn(r.Header); sent {
		who, err := a.keys.check(r.Context(), key, a.keys.versions(r.Context()))
		return who, a.counted(r, err)
	}
	if a.hasSessionCookie(r) {
		return a.Person(r.Context())
	}
	return Principal{}, ErrUnauthorized
}

// counted counts a key or token that was looked at and is wrong. Right ones are
// never asked for the count: bad keys cannot lock out good ones.
func (a *Auth) counted(r *http.Request, err error) error {
	if !errors.Is(err, ErrUnauthorized) {
		return err
	}
	if wait, ok := a.limiter.failed(limit{"keys " + network(a.Client(r)).String(), perKeyhole}); !ok {
		return &TooManyError{Wait: wait}
	}
	return err
}

// CheckIn is what a check-in wants to be taken for. Hostname is folded.
type CheckIn struct {
	SiteID   int64
	Hostname string
}

// AuthorizeCheckIn decides whether a request may check in for a site: with an
// agent key of that site, as the one host if the key was enrolled, with an admin
// key for any, or, on a fresh manager, without credentials from this host. The
// caller has looked at the change counters already, once for all it needs;
// versions is nil if the database could not be asked.
func (a *Auth) AuthorizeCheckIn(r *http.Request, as CheckIn, versions *store.Versions) error {
	key, sent := keyIn(r.Header)
	if !sent {
		return a.trustLoopback(r, as.SiteID, versions)
	}
	who, err := a.keys.check(r.Context(), key, versions)
	switch {
	case err != nil:
		return a.counted(r, err)
	case who.Role == RoleAdmin:
		return nil
	case who.Role != RoleAgent || who.SiteID != as.SiteID:
		return ErrForbidden
	case who.Hostname != "" && who.Hostname != as.Hostname:
		return &WrongHostError{Want: who.Hostname, Got: as.Hostname}
	}
	return nil
}

// trustLoopback lets the manager's own agent in until its site has a key.
func (a *Auth) trustLoopback(r *http.Request, siteID int64, versions *store.Versions) error {
	if a.loopbackSite == 0 || siteID != a.loopbackSite || !FromThisHost(r) {
		return ErrUnauthorized
	}
	set, err := a.keys.load(r.Context(), versions)
	if err != nil {
		return err
	}
	if set.enrolled[siteID] {
		return ErrUnauthorized
	}
	return nil
}

// FoldName is the form in which user names are stored and looked up.
func FoldName(name string) string { return strings.ToLower(strings.TrimSpace(name)) }
