package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"opensource.internal/manager/internal/health"
	"opensource.internal/manager/internal/server"
	"opensource.internal/manager/internal/store"
)

// checkPatience bounds each look at something outside of this process.
const checkPatience = 10 * time.Second

func checkDatabase(e *environmentOf) []finding {
	database := server.DatabaseOf(e.config)
	ctx, cancel := context.WithTimeout(e, 10*time.Minute) // a check of every page of a large file
	defer cancel()
	found, err := store.Examine(ctx, database)
	if err != nil {
		fix := "is it the right one? Run doctor as root; restore a backup if the file is damaged"
		if store.Locked(err) {
			fix = "another program has locked it: fuser -v shows which one; end that"
		}
		all := []finding{{"database", fail, err.Error(), fix}}
		if database.URL == "" {
			all = append(all, finding(health.Disk(filepath.Dir(database.Path)))) // a read-only one is often why
		}
		return all
	}
	all := []finding{checkSchema(database, found)}
	if database.URL != "" {
		return append(all, finding{"database", fine, database.String() + " answers", ""})
	}
	if store.Locked(found.Damage) {
		all = append(all, finding{"database file", fail, found.Damage.Error(), "another program has locked it: fuser -v shows which one; end that"})
	} else if found.Damage != nil {
		all = append(all, finding{"database file", fail, found.Damage.Error(), "stop the manager and restore a backup: opensource-manager restore FILE"})
	} else {
		all = append(all, finding{"database file", fine, fmt.Sprintf("%s: %s, whole, journal %s", database.Path, health.Size(found.Bytes), found.JournalMode), ""})
	}
	return append(all, checkOwner(database.Path), finding(health.Disk(filepath.Dir(database.Path))))
}

func checkSchema(database store.Database, found store.Examination) finding {
	message := fmt.Sprintf("%d", found.Schema)
	switch {
	case found.Schema < found.Newest:
		return finding{"schema", warn, fmt.Sprintf("%s, this program has %d", message, found.Newest), "restart the manager, or run opensource-manager migrate"}
	case found.Schema > found.Newest:
		return finding{"schema", fail, (&store.SchemaError{Database: database.String(), Have: found.Schema, Want: found.Newest}).Error(), "install the newer version, or restore a backup"}
	}
	return finding{"schema", fine, message + ", that of this program", ""}
}

// checkOwner holds the file to what the service, which is not root, can use.
func checkOwner(path string) finding {
	var file, folder syscall.Stat_t
	if err := errors.Join(syscall.Stat(path, &file), syscall.Stat(filepath.Dir(path), &folder)); err != nil {
		return finding{"owner", fail, err.Error(), ""}
	}
	switch {
	case file.Uid != folder.Uid:
		return finding{"owner", fail, fmt.Sprintf("%s belongs to uid %d, its folder to uid %d", path, file.Uid, folder.Uid), fmt.Sprintf("chown --reference=%s %s*", filepath.Dir(path), path)}
	case file.Mode&0o007 != 0:
		return finding{"owner", warn, fmt.Sprintf("%s has the mode %04o: everybody on this host reads hashes of keys and passwords", path, file.Mode&0o777), "chmod 0640 " + path}
	}
	return finding{"owner", fine, fmt.Sprintf("uid %d, mode %04o", file.Uid, file.Mode&0o777), ""}
}

// answer is what health says, and which process of the manager said it.
type healthAnswer struct {
	ready    bool
	mismatch string
	instance string
}

var errNotAManager = errors.New("something answers that is no manager")

// authorities are those that this host trusts. Go would trust every certificate
// of the folder as well, and with it the manager's own, which lies there.
func authorities() *x509.CertPool {
	bundle, err := os.ReadFile(cmp.Or(os.Getenv("SSL_CERT_FILE"), "/etc/ssl/certs/ca-certificates.crt"))
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(bundle) {
		return nil // Go's
	}
	return pool
}

// askHealth asks a running manager how it is.
func askHealth(ctx context.Context, url string) (healthAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "GET", url+"/api/v1/health", nil)
	if err != nil {
		return healthAnswer{}, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true
	transport.TLSClientConfig = &tls.Config{RootCAs: authorities()}
	client := http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	got, err := client.Do(request)
	if err != nil {
		return healthAnswer{}, err
	}
	defer got.Body.Close()
	var body struct {
		Data struct {
			Live, Ready       bool
			PublicURLMismatch string
		}
	}
	if json.NewDecoder(io.LimitReader(got.Body, 64<<10)).Decode(&body) != nil || !body.Data.Live {
		return healthAnswer{}, fmt.Errorf("%w: status %d, %q", errNotAManager, got.StatusCode, got.Header.Get("Location"))
	}
	instance, _, _ := strings.Cut(got.Header.Get("X-Request-Id"), "-")
	return healthAnswer{body.Data.Ready, body.Data.PublicURLMismatch, instance}, nil
}

// localURL is where the manager listens, from this host.
func localURL(e *environmentOf) string {
	host, port, _ := net.SplitHostPort(e.config.Listen) // checked with the settings
	switch host {
	case "", "0.0.0.0":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

func checkService(e *environmentOf) []finding {
	var found []finding
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		ctx, cancel := context.WithTimeout(e, checkPatience)
		defer cancel()
		out, _ := exec.CommandContext(ctx, "systemctl", "is-active", "opensource-manager.service").Output() // any other state is a status of its own
		switch state := strings.TrimSpace(string(out)); state {
		case "active":
			found = append(found, finding{"service", fine, "opensource-manager.service is active", ""})
		default:
			found = append(found, finding{"service", warn, "opensource-manager.service is " + state, "systemctl start opensource-manager; journalctl -u opensource-manager says why not"})
		}
	}
	switch health, err := askHealth(e, localURL(e)); {
	case errors.Is(err, errNotAManager):
		found = append(found, finding{"listen", fail, fmt.Sprintf("%s is taken: %v", e.config.Listen, err), "ss -ltnp shows by whom; end it, or set LISTEN to another port"})
	case err != nil:
		found = append(found, finding{"listen", fail, fmt.Sprintf("nobody answers at %s: %v", e.config.Listen, err), "start the manager"})
	case !health.ready:
		found = append(found, finding{"listen", fail, "the manager answers that it is not ready", "journalctl -u opensource-manager says why: as a rule the database cannot be written"})
	default:
		found = append(found, finding{"listen", fine, "a manager answers at " + e.config.Listen + ", and is ready", ""})
	}
	return found
}

// checkPublicURL goes the way of browsers and compares what arrives.
func checkPublicURL(e *environmentOf) []finding {
	public := e.config.PublicURL
	if public == nil {
		return []finding{{"public URL", warn, "PUBLIC_URL is not set", "set it to what browsers use, so that cookies are for TLS only and a wrong proxy is noticed"}}
	}
	health, err := askHealth(e, public.String())
	var bad *tls.CertificateVerificationError
	switch {
	case errors.As(err, &bad):
		return []finding{{"public URL", fail, fmt.Sprintf("%s: %v", public, bad.Err), "agents and browsers refuse this certificate: renew it at the proxy; or if its authority is a private one, make it known here (update-ca-certificates) and give agents MANAGER_CA_FILE"}}
	case err != nil:
		return []finding{{"public URL", fail, fmt.Sprintf("%s: %v", public, err), "does the name lead to the proxy, and the proxy to " + e.config.Listen + "?"}}
	}
	found := []finding{}
	if health.mismatch != "" {
		found = append(found, finding{"public URL", fail, health.mismatch, "the proxy must send X-Forwarded-Proto and X-Forwarded-Host, and TRUSTED_PROXIES must hold the address it comes from"})
	} else {
		found = append(found, finding{"public URL", fine, public.String() + " leads to a manager, and what arrives matches", ""})
	}
	if local, err := askHealth(e, localURL(e)); err == nil && local.instance != health.instance {
		found = append(found, finding{"public URL", warn, public.String() + " is answered by another process than " + e.config.Listen, "right with several managers on one PostgreSQL database; wrong otherwise"})
	}
	if public.Scheme == "https" && len(e.config.TrustedProxies) == 0 {
		found = append(found, finding{"proxy", warn, "no proxy is trusted: everybody seems to come from the proxy's address", "set TRUSTED_PROXIES to the address of the proxy, such as 127.0.0.1/32"})
	}
	return found
}

func checkClock(e *environmentOf) []finding {
	found := []finding{finding(health.Clock())}
	if e.mistakes != nil {
		return found
	}
	agents, err := store.ExamineAgents(e, server.DatabaseOf(e.config))
	if err != nil {
		return found // told by the check of the database
	}
	for _, f := range health.Clocks(agents, time.Now()) {
		found = append(found, finding(f))
	}
	return found
}
