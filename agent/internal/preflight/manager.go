package preflight

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"opensource.internal/agent/checkin"
)

const (
	maxAnswer = 64 << 10 // bytes that are read of an answer
	// skewWorthTelling is how far the clock may be off without a word, as on the
	// manager's pages.
	skewWorthTelling = 30 * time.Second
	// certificateSoon is how long before its end the manager's certificate is
	// told of: without a valid one no agent hears of any change.
	certificateSoon = 14 * 24 * time.Hour
)

// manager asks the manager as a pass does, and says how far that went. Nothing
// is asked that it would record.
func manager(ctx context.Context, o *Options) []Finding {
	if o.Manager == nil {
		return list(warn("see the settings above", "not asked: the settings do not say where it is"))
	}
	way := o.Manager.way()
	before := o.Now()
	answer, err := o.Manager.get(ctx, "/api/v1/health")
	if err != nil {
		return list(o.Manager.unreachable(err, way))
	}
	found := list(ok("%s answers%s", o.Manager.URL.Redacted(), way))
	found = append(found, named("manager's certificate", tlsFinding(answer.tls, o.Now())...)...)
	found = append(found, named("clock", clock(answer.header, before, o.Now()))...)
	if other := notManager(answer); other != nil {
		return append(found, *other)
	}
	found = append(found, health(answer, o.Manager)...)
	if o.Manager.Key == "" && o.Root == "" {
		// (An error is one that systemd's own check tells.)
		if given, _ := o.Units.HasCredential(ctx, passUnit, "api-key"); given {
			return append(found, named("API key", ok("only the service sees it, as the systemd credential api-key; the last pass above shows whether it is right"))...)
		}
	}
	return append(found, named("API key", o.Manager.key(ctx, o.SiteID))...)
}

// answer is what came back, as far as it matters.
type answer struct {
	status int
	header http.Header
	body   []byte
	tls    *tls.ConnectionState
}

// get asks for a path below the manager's URL, with the key. Redirects are not
// followed.
func (m *Manager) get(ctx context.Context, path string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, checkin.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.URL.JoinPath(path).String(), nil)
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", m.UserAgent)
	if m.Key != "" {
		request.Header.Set("Authorization", "Bearer "+m.Key)
	}
	client := http.Client{
		Transport:     m.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{}, withoutURL(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return answer{}, err
	}
	return answer{response.StatusCode, response.Header, body, response.TLS}, nil
}

// withoutURL drops the URL that net/http puts before its errors.
func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// way names the proxy on the way to the manager, if there is one.
func (m *Manager) way() string {
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: m.URL})
	if err != nil || proxy == nil {
		return ""
	}
	return " through the proxy " + proxy.Redacted()
}

// unreachable tells how far the way to the manager went, and what to look at
// there.
func (m *Manager) unreachable(err error, way string) Finding {
	var (
		noName    *net.DNSError
		notDial   *net.OpError
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		noTLS     tls.RecordHeaderError
	)
	host := m.URL.Host
	switch {
	case errors.As(err, &noName):
		return fail("correct MANAGER_URL, or the name servers in /etc/resolv.conf (getent hosts "+noName.Name+")",
			"there is no address for %s%s: %v", noName.Name, way, noName)
	case errors.As(err, &authority):
		return fail("set MANAGER_CA_FILE to the authority's certificate, or serve the manager's certificate with its whole chain",
			"the certificate of %s comes from an authority that is not trusted here: %v", host, err)
	case errors.As(err, &name):
		return fail("use a name in MANAGER_URL that is in the certificate", "the certificate is not one of %s: %v", host, err)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fail("renew it on the manager, or set this host's clock right (date)", "the certificate of %s is not valid now: %v", host, err)
	case errors.As(err, &noTLS) || errors.Is(err, http.ErrSchemeMismatch):
		return fail("MANAGER_URL may have to begin with http://, or have another port", "%s does not speak TLS: %v", host, err)
	case errors.As(err, &notDial) && notDial.Op == "proxyconnect":
		return fail("correct HTTPS_PROXY and NO_PROXY", "no connection%s: %v", way, err)
	case errors.Is(err, context.DeadlineExceeded):
		return fail("look for a firewall on the way, and whether the manager runs", "%s did not answer in time%s: %v", host, way, err)
	case errors.As(err, &notDial) && notDial.Op == "dial" && isLoopback(m.URL):
		return fail("systemctl status opensource-manager, or correct MANAGER_URL", "no connection to %s: %v", host, err)
	case errors.As(err, &notDial) && notDial.Op == "dial":
		return fail("is the manager running, on that port, and not on its own loopback address alone (LISTEN)?",
			"no connection to %s%s: %v", host, way, err)
	}
	return fail("correct MANAGER_URL; curl -v "+m.URL.Redacted(), "no answer from %s%s: %v", host, way, err)
}

func tlsFinding(state *tls.ConnectionState, now time.Time) []Finding {
	if state == nil || len(state.PeerCertificates) == 0 {
		return nil
	}
	leaf := state.PeerCertificates[0]
	end := leaf.NotAfter.UTC().Format(time.DateOnly)
	if leaf.NotAfter.Sub(now) < certificateSoon {
		return list(warn("renew it on the manager", "it ends on %s: agents get nothing new from then on", end))
	}
	return list(ok("trusted, and valid until %s", end))
}

// notManager tells of an answer that cannot be a manager's.
func notManager(a answer) *Finding {
	var found Finding
	switch {
	case a.status/100 == 3:
		found = fail("set MANAGER_URL to the final address", "it redirects to %q, which is not followed", a.header.Get("Location"))
	case a.status == http.StatusOK && !isJSON(a.header):
		found = fail("let /api/v1/ through without sign-in, or correct MANAGER_URL",
			"its answer is not JSON but %q: a page stands in front of the manager", a.header.Get("Content-Type"))
	default:
		return nil
	}
	return &found
}

// health reads what the manager tells everybody about itself.
func health(a answer, m *Manager) []Finding {
	var told struct {
		Data *struct {
			Ready             bool    `json:"ready"`
			PublicURLMismatch *string `json:"publicUrlMismatch"`
		} `json:"data"`
	}
	if !isJSON(a.header) || json.Unmarshal(a.body, &told) != nil || told.Data == nil {
		return list(warn("if passes fail, correct MANAGER_URL (http or https, host, port, path)",
			"it does not tell its health (status %d): an older manager, or something else", a.status))
	}
	found := list(ok("ready"))
	if !told.Data.Ready {
		found = list(fail("on the manager: journalctl -u opensource-manager", "it is not ready: it cannot use its database"))
	}
	return append(found, named("PUBLIC_URL", publicURL(told.Data.PublicURLMismatch, m.URL)...)...)
}

// publicURL passes on what the manager says of the address it was asked by. An
// agent on the manager's own host is right to use another one than people.
func publicURL(mismatch *string, manager *url.URL) []Finding {
	switch {
	case mismatch == nil || *mismatch == "":
		return nil
	case isLoopback(manager):
		return list(ok("people use another address than this agent, which is on the manager's own host"))
	}
	return list(warn("set MANAGER_URL to what people use, or correct PUBLIC_URL on the manager", "the manager says: %s", *mismatch))
}

func isLoopback(u *url.URL) bool {
	address := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || address != nil && address.IsLoopback()
}

func isJSON(header http.Header) bool {
	mediaType, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	return err == nil && (mediaType == "application/json" || strings.HasSuffix(mediaType, "+json"))
}

// clock compares the manager's clock, which is told in whole seconds, with this
// host's.
func clock(header http.Header, before, after time.Time) Finding {
	theirs, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return warn("", "not compared: the manager does not tell the time")
	}
	skew := time.Duration(0)
	switch {
	case before.After(theirs.Add(time.Second)):
		skew = before.Sub(theirs.Add(time.Second))
	case after.Before(theirs):
		skew = after.Sub(theirs)
	}
	direction := "ahead of"
	if skew < 0 {
		direction = "behind"
	}
	if skew.Abs() > skewWorthTelling {
		return warn("timedatectl set-ntp true; the clock of a container is its node's",
			"it is %s %s the manager's", skew.Abs().Round(time.Second), direction)
	}
	return ok("within %s of the manager's", skew.Abs().Truncate(time.Second)+time.Second)
}

// key asks the manager whose key this is, which it does not record.
func (m *Manager) key(ctx context.Context, siteID int64) Finding {
	answer, err := m.get(ctx, "/api/v1/session")
	if err != nil {
		return warn("see the manager above", "not tried: %v", err)
	}
	site := "N"
	if siteID != 0 { // the settings do say it
		site = strconv.FormatInt(siteID, 10)
	}
	makeOne := "on the manager: opensource-manager enroll " + site + "; then give the command that it prints: sudo opensource-agent enroll --manager URL --token T"
	if m.Key != "" {
		makeOne += " --force"
	}
	var told struct {
		Data *struct {
			Name   string `json:"name"`
			Role   string `json:"role"`
			SiteID *int64 `json:"siteId"`
			// Hostname is the one host of an enrolled agent's key.
			Hostname string `json:"hostname"`
		} `json:"data"`
	}
	switch {
	case answer.status == http.StatusUnauthorized && m.Key == "" && isLoopback(m.URL):
		return ok("none, as it may be on the manager's own host until there is a key for this site; the last pass above shows whether it is")
	case answer.status == http.StatusUnauthorized && m.Key == "":
		return fail(makeOne, "none is set")
	case answer.status == http.StatusUnauthorized:
		return fail(makeOne, "the manager does not know it: it is not complete, or was revoked")
	case answer.status != http.StatusOK || !isJSON(answer.header) || json.Unmarshal(answer.body, &told) != nil || told.Data == nil:
		return warn("sudo opensource-agent tells", "this manager does not say whether it accepts the key (status %d)", answer.status)
	}
	who := told.Data
	switch {
	case who.Hostname != "" && m.Hostname != "" && who.Hostname != m.Hostname:
		return fail(makeOne,
			"%q is the key of the host %q, and this host is %q", who.Name, who.Hostname, m.Hostname)
	case who.Role == "agent" && who.SiteID != nil && *who.SiteID == siteID:
		return ok("%q, of the agent of site %d", who.Name, siteID)
	case who.Role == "agent" && who.SiteID != nil && siteID == 0:
		return ok("%q, of the agent of site %d", who.Name, *who.SiteID)
	case who.Role == "agent" && who.SiteID != nil:
		return fail(makeOne+", or correct SITE_ID", "%q is the key of site %d, and SITE_ID is %d", who.Name, *who.SiteID, siteID)
	case who.Role == "admin":
		return warn(makeOne, "%q is an administrator's: whoever reads it here can change everything", who.Name)
	}
	return fail(makeOne, "%q has the role %q, which may not check in", who.Name, who.Role)
}
