// Package config reads the agent's settings from flags, the environment and
// the environment files of its unit, and finds all mistakes at once. Only the
// main program uses it.
package config

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/envfile"
)

// File is where an administrator configures the agent.
const File = "/etc/opensource-agent/agent.env"

// Files are the environment files of the unit, later ones winning.
var Files = []string{"/etc/environment", "/run/opensource-agent/environment", File}

// Flags are the settings given on the command line; an empty one is not given.
// The key cannot be: arguments are visible to every user of the host.
type Flags struct {
	Root           string
	LogLevel       string
	SiteID         string
	ManagerURL     string
	StateDirectory string
}

// Local is what a command needs that does not speak to the manager.
type Local struct {
	Root           string // empty: the real filesystem
	StateDirectory string // absolute, below Root
	LogLevel       slog.Level
	BySystemd      bool // started by systemd, not by a person
}

// Config is a complete, valid configuration.
type Config struct {
	Local
	SiteID          int64
	ManagerURL      *url.URL
	ManagerHostname string         // empty: no lasting server for the dashboard
	ManagerRoots    *x509.CertPool // nil: the host's certificate authorities
	APIKey          string         // empty: none
	Hostname        string         // empty: that of the host
	// RemovalGuard is the share of what runs, in percent, that a snapshot may
	// remove without confirmation; 0 means any share.
	RemovalGuard int
	SiteProbes   bool
	// Proxies holds the variables of the environment that name the proxy on
	// the way to the manager, as far as they are set.
	Proxies map[string]string
}

// defaults are the settings that nobody has to give.
var defaults = map[string]string{
	"STATE_DIRECTORY": "/var/lib/opensource-agent",
	"LOG_LEVEL":       "info",
	"REMOVAL_GUARD":   "50%",
	"SITE_PROBES":     "off",
}

// Load returns the configuration. The error names every mistake, a line each.
// A flag wins over the environment, which wins over the environment files.
// These are read only when started by hand: systemd has read them already.
func Load(flags Flags, environ []string) (Config, error) {
	r, bySystemd, err := open(flags, environ)
	if err != nil {
		return Config{}, err
	}
	if r.get("SITE_ID") == "" && r.get("MANAGER_URL") == "" && len(r.mistakes) == 0 {
		return Config{}, fmt.Errorf("not configured yet: run opensource-agent enroll, or set SITE_ID and MANAGER_URL in %s", r.root+File)
	}
	unread := errors.Join(r.mistakes...)
	c := r.config(bySystemd)
	if unread != nil { // what seems to be missing may be in there
		return c, unread
	}
	return c, errors.Join(r.mistakes...)
}

// config reads everything.
func (r *reader) config(bySystemd bool) Config {
	return Config{
		Local:           r.local(bySystemd),
		SiteID:          r.siteID(),
		ManagerURL:      r.managerURL(),
		ManagerHostname: r.domain("MANAGER_HOSTNAME"),
		ManagerRoots:    r.managerRoots(),
		APIKey:          r.apiKey(),
		Hostname:        r.domain("AGENT_HOSTNAME"),
		RemovalGuard:    r.removalGuard(),
		SiteProbes:      r.onOrOff("SITE_PROBES"),
		Proxies:         r.proxies(),
	}
}

// LoadLocal is Load for a command that does not speak to the manager, and needs
// no complete configuration.
func LoadLocal(flags Flags, environ []string) (Local, error) {
	r, bySystemd, err := open(flags, environ)
	if err != nil {
		return Local{}, err
	}
	return r.local(bySystemd), errors.Join(r.mistakes...)
}

// Rendering is what the rendered files depend on besides snapshot and host.
// None of it has to be set.
type Rendering struct {
	Root            string // empty: the real filesystem
	ManagerUpstream string // see Config.LoopbackUpstream
	ManagerHostname string
}

// LoadRendering is Load for a command that only renders. An environment file
// that may not be read is an fs.ErrPermission among the mistakes.
func LoadRendering(flags Flags, environ []string) (Rendering, error) {
	r, _, err := open(flags, environ)
	if err != nil {
		return Rendering{}, err
	}
	c := Rendering{Root: r.root, ManagerHostname: r.domain("MANAGER_HOSTNAME")}
	if r.get("MANAGER_URL") != "" {
		c.ManagerUpstream = loopbackUpstream(r.managerURL())
	}
	return c, errors.Join(r.mistakes...)
}

// KeyFile is where a host that is enrolled keeps its key.
const KeyFile = "/etc/opensource-agent/api-key"

// Enrolling is what there is to know before a host is enrolled.
type Enrolling struct {
	Local
	ManagerURL   *url.URL
	ManagerRoots *x509.CertPool
	Hostname     string            // empty: that of the host
	Proxies      map[string]string // see Config
	// Configured says what the agent does so far, if it does anything.
	Configured string
}

// LoadEnrolling is Load for a host that is to be enrolled. caFile is as
// MANAGER_CA_FILE. A key whose place has precedence over KeyFile is a mistake.
func LoadEnrolling(flags Flags, caFile string, environ []string) (Enrolling, error) {
	r, bySystemd, err := open(flags, environ)
	if err != nil {
		return Enrolling{}, err
	}
	if caFile != "" {
		r.sources = append([]source{{byFlag, map[string]string{"MANAGER_CA_FILE": caFile}}}, r.sources...)
	}
	c := Enrolling{
		Local: r.local(bySystemd), ManagerURL: r.managerURL(), ManagerRoots: r.managerRoots(),
		Hostname: r.domain("AGENT_HOSTNAME"), Proxies: r.proxies(),
	}
	for _, source := range r.sources {
		if strings.HasPrefix(source.name, r.root+"/") && source.name != r.root+File && source.values["API_KEY"] != "" {
			r.mistake("API_KEY", fmt.Errorf("it is set in %s, and would win over the key of this host: remove it there", source.name))
		}
	}
	c.Configured = r.configured()
	return c, errors.Join(r.mistakes...)
}

// configured names the site in the environment files, or that there is a key.
func (r *reader) configured() string {
	for _, name := range []string{"SITE_ID", "API_KEY", "API_KEY_FILE"} {
		for _, source := range r.sources {
			if value := source.values[name]; value != "" && strings.HasPrefix(source.name, r.root+"/") {
				return name + "=" + shown(name, value) + " in " + source.name
			}
		}
	}
	return ""
}

// open gathers all sources of settings.
func open(flags Flags, environ []string) (r *reader, bySystemd bool, err error) {
	root := ""
	if flags.Root != "" {
		if root, err = filepath.Abs(flags.Root); err != nil {
			return nil, false, fmt.Errorf("--root: %w", err)
		}
		if root == "/" {
			return nil, false, errors.New("--root: / is the host itself: name another folder, or leave --root away")
		}
	}
	env := parseEnviron(environ)
	r = &reader{root: root, sources: []source{{byFlag, flagValues(flags)}, {byEnvironment, env}}}
	bySystemd = envfile.ReadBySystemd(env)
	if !bySystemd {
		r.readFiles()
	}
	r.sources = append(r.sources, source{byDefault, defaults})
	return r, bySystemd, nil
}

func flagValues(f Flags) map[string]string {
	return map[string]string{
		"SITE_ID": f.SiteID, "MANAGER_URL": f.ManagerURL,
		"STATE_DIRECTORY": f.StateDirectory, "LOG_LEVEL": f.LogLevel,
	}
}

func parseEnviron(environ []string) map[string]string {
	env := make(map[string]string, len(environ))
	for _, entry := range environ {
		if name, value, found := strings.Cut(entry, "="); found {
			env[name] = value
		}
	}
	return env
}

// reader looks settings up and collects what is wrong with them.
type reader struct {
	root     string
	sources  []source // the first that has a value wins
	asked    []string // the names of all settings that were looked up
	mistakes []error
}

// source is a place in which settings are found.
type source struct {
	name   string
	values map[string]string
}

func (r *reader) get(name string) string {
	if !slices.Contains(r.asked, name) {
		r.asked = append(r.asked, name)
	}
	value, _ := find(name, r.sources)
	return value
}

// find returns the value of a setting, and where it is from.
func find(name string, sources []source) (value, from string) {
	for _, source := range sources {
		if value := source.values[name]; value != "" {
			return value, source.name
		}
	}
	return "", ""
}

func (r *reader) mistake(name string, err error) {
	r.mistakes = append(r.mistakes, fmt.Errorf("%s: %w", name, err))
}

// readFiles adds the environment files, the strongest first. A file that is
// not there is none; one that may not be read is worth a word.
func (r *reader) readFiles() {
	for i := len(Files) - 1; i >= 0; i-- {
		content, err := os.ReadFile(r.root + Files[i])
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, fs.ErrPermission):
			r.mistake(r.root+Files[i], fmt.Errorf("%w: run it as root (sudo opensource-agent)", fs.ErrPermission))
		case err != nil:
			r.mistake(r.root+Files[i], err)
		default:
			r.sources = append(r.sources, source{r.root + Files[i], envfile.Parse(string(content))})
		}
	}
}

func (r *reader) local(bySystemd bool) Local {
	return Local{Root: r.root, StateDirectory: r.stateDirectory(), LogLevel: r.logLevel(), BySystemd: bySystemd}
}

func (r *reader) siteID() int64 {
	value := r.get("SITE_ID")
	id, err := strconv.ParseInt(value, 10, 64)
	switch {
	case value == "":
		r.mistake("SITE_ID", errors.New("not set: it is the number of this site on the manager"))
	case err != nil || id < 1:
		r.mistake("SITE_ID", fmt.Errorf("%q is not a site number such as 1", value))
	}
	return id
}

func (r *reader) managerURL() *url.URL {
	value := r.get("MANAGER_URL")
	if value == "" {
		r.mistake("MANAGER_URL", errors.New("not set: it is the address of the manager, such as https://manager.example.com"))
		return nil
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "" {
		r.mistake("MANAGER_URL", errors.New("not an address such as https://manager.example.com (http or https, a host, no user, no query)"))
		return nil
	}
	return u
}

// managerRoots reads MANAGER_CA_FILE, the authority of a private certificate.
func (r *reader) managerRoots() *x509.CertPool {
	name := r.get("MANAGER_CA_FILE")
	if name == "" {
		return nil
	}
	pem, err := os.ReadFile(name)
	if err != nil {
		r.mistake("MANAGER_CA_FILE", err)
		return nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		r.mistake("MANAGER_CA_FILE", fmt.Errorf("%s holds no PEM certificate", name))
	}
	return pool
}

// apiKey takes the key from API_KEY, from the file API_KEY_FILE, or from the
// systemd credential "api-key" (systemd.exec(5), LoadCredential=).
func (r *reader) apiKey() string {
	key, name, file := r.get("API_KEY"), "API_KEY", ""
	switch {
	case key != "":
	case r.get("API_KEY_FILE") != "":
		name, file = "API_KEY_FILE", r.get("API_KEY_FILE")
	case r.get("CREDENTIALS_DIRECTORY") != "":
		name, file = "credential api-key", filepath.Join(r.get("CREDENTIALS_DIRECTORY"), "api-key")
	}
	if file != "" {
		content, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) && name != "API_KEY_FILE" {
			return ""
		}
		if err != nil {
			r.mistake(name, err)
			return ""
		}
		if key = strings.TrimSpace(string(content)); key == "" {
			r.mistake(name, fmt.Errorf("%s is empty", file))
		}
	}
	for _, c := range []byte(key) {
		if c <= ' ' || c >= 0x7f {
			r.mistake(name, errors.New("the key contains a space or a character that is not ASCII"))
			return ""
		}
	}
	return key
}

func (r *reader) stateDirectory() string {
	// systemd joins several directories with colons; the first one is ours.
	dir, _, _ := strings.Cut(r.get("STATE_DIRECTORY"), ":")
	if !filepath.IsAbs(dir) {
		r.mistake("STATE_DIRECTORY", fmt.Errorf("%q is not an absolute path", dir))
	}
	return r.root + filepath.Clean(dir)
}

func (r *reader) logLevel() slog.Level {
	var level slog.Level
	value := r.get("LOG_LEVEL")
	switch strings.ToLower(value) {
	case "debug":
		level = slog.LevelDebug
	case "info":
		level = slog.LevelInfo
	case "warn", "warning":
		level = slog.LevelWarn
	case "error":
		level = slog.LevelError
	default:
		r.mistake("LOG_LEVEL", fmt.Errorf("%q is not one of debug, info, warn, error", value))
	}
	return level
}

func (r *reader) domain(name string) string {
	value := r.get(name)
	if value == "" {
		return ""
	}
	domain, err := checkin.ParseDomain(value)
	if err != nil {
		r.mistake(name, err)
	}
	return domain
}

// removalGuard reads a share in percent, or that there is no guard. 0 could mean
// either no removal or no guard, and 100 would be no guard by another name: both
// are refused.
func (r *reader) removalGuard() int {
	value := r.get("REMOVAL_GUARD")
	if value == "off" {
		return 0
	}
	share, err := strconv.ParseUint(strings.TrimSuffix(value, "%"), 10, 8)
	if err != nil || share < 1 || share > 99 {
		r.mistake("REMOVAL_GUARD", fmt.Errorf("%q is not a share from 1%% to 99%%, such as 50%%, or off", value))
	}
	return int(share)
}

func (r *reader) onOrOff(name string) bool {
	value := r.get(name)
	if value != "on" && value != "off" {
		r.mistake(name, fmt.Errorf("%q is neither on nor off", value))
	}
	return value == "on"
}

// proxies looks up what net/http would in the environment alone.
func (r *reader) proxies() map[string]string {
	found := map[string]string{}
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"} {
		if value := r.get(name); value != "" {
			found[name] = value
		}
	}
	return found
}

// LoopbackUpstream returns "ADDRESS:PORT" of the manager if its URL names this
// host's loopback interface, by IPv4, and the empty string otherwise.
func (c Config) LoopbackUpstream() string { return loopbackUpstream(c.ManagerURL) }

// loopbackUpstream takes what answers on the ports of the web, or by TLS, for no
// manager but a web server in front of one: as a rule the very nginx that would
// ask itself.
func loopbackUpstream(manager *url.URL) string {
	if manager == nil || manager.Scheme != "http" {
		return ""
	}
	host, port := manager.Hostname(), manager.Port()
	addr, err := netip.ParseAddr(host)
	if host != "localhost" && (err != nil || !addr.IsLoopback()) {
		return ""
	}
	if port == "" || port == "80" || port == "443" {
		return ""
	}
	return "127.0.0.1:" + port
}
