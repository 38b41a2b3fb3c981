// Package config turns flags and environment into the manager's settings. All
// mistakes are found at once, so that an administrator mends the file once.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Flags are the settings as text. A flag wins over the environment variable
// of the same name in capitals with underscores (--public-url, PUBLIC_URL);
// an empty value counts as not given.
type Flags struct {
	StateDirectory string `help:"Folder of everything the manager keeps (STATE_DIRECTORY, default ${state_directory})." placeholder:"DIR"`
	Database       string `help:"SQLite database file (DATABASE, default manager.db in the state directory)." placeholder:"FILE"`
	Listen         string `help:"Address to serve HTTP on; TLS is the proxy's (LISTEN, default ${listen})." placeholder:"ADDR:PORT"`
	PublicURL      string `name:"public-url" help:"URL browsers use; its scheme decides about Secure cookies, its path is the prefix (PUBLIC_URL)." placeholder:"URL"`
	TrustedProxies string `help:"Comma-separated networks whose X-Forwarded-For is believed (TRUSTED_PROXIES, default none)." placeholder:"CIDR"`
	RevisionsKeep  string `help:"How many days all revisions of a site are kept (REVISIONS_KEEP, default ${revisions_keep})." placeholder:"DAYS"`
	RevisionsMin   string `help:"How many of a site's latest revisions are kept however old they are (REVISIONS_MIN, default ${revisions_min})." placeholder:"N"`
	LoopbackSite   string `help:"Site whose agent may check in over loopback without a key until the site has one of its own; 0 or off for none (LOOPBACK_SITE, default ${loopback_site})." placeholder:"N"`
	AuditKeep      string `help:"How many days the audit log is kept (AUDIT_KEEP, default ${audit_keep})." placeholder:"DAYS"`
	AuditMax       string `help:"How many entries of the audit log are kept at most (AUDIT_MAX, default ${audit_max})." placeholder:"N"`
	EventsKeep     string `help:"How many days the events of agents are kept (EVENTS_KEEP, default ${events_keep})." placeholder:"DAYS"`
	EventsMax      string `help:"How many events of agents are kept at most (EVENTS_MAX, default ${events_max})." placeholder:"N"`
	LogLevel       string `help:"debug, info, warn or error (LOG_LEVEL, default ${log_level})." placeholder:"LEVEL" complete:"debug,info,warn,error"`
	LogFormat      string `help:"text or json on stderr, or auto: the journal if stderr is connected to it, else text (LOG_FORMAT, default ${log_format})." placeholder:"FORMAT" complete:"auto,text,json"`
	NotifyWindow   string `help:"How long to gather what goes into one notification (NOTIFY_WINDOW, default ${notify_window})." placeholder:"DURATION"`
	NotifyRemind   string `help:"After how long to notify again of what goes on; off for never (NOTIFY_REMIND, default ${notify_remind})." placeholder:"DURATION"`
	MetricsListen  string `help:"Another address to serve /metrics on, without credentials (METRICS_LISTEN, default none)." placeholder:"ADDR:PORT"`
	MetricsDetail  string `help:"Up to how many sites, and up to how many agents, each has series of its own in /metrics (METRICS_DETAIL, default ${metrics_detail})." placeholder:"N"`
}

// Defaults are the settings that hold when nothing is given.
var Defaults = Flags{
	StateDirectory: "/var/lib/opensource-manager",
	Listen:         "127.0.0.1:3000",
	RevisionsKeep:  "30d",
	RevisionsMin:   "50",
	LoopbackSite:   "1",
	AuditKeep:      "365d",
	AuditMax:       "1000000",
	EventsKeep:     "90d",
	EventsMax:      "200000",
	LogLevel:       "info",
	LogFormat:      LogAuto,
	MetricsDetail:  "500",
	NotifyWindow:   "1m",
	NotifyRemind:   "24h",
}

// The values of LOG_FORMAT.
const (
	LogAuto = "auto"
	LogText = "text"
	LogJSON = "json"
)

// Config is a checked configuration.
type Config struct {
	StateDirectory string
	// Database is the SQLite file. It means nothing if DatabaseURL is set.
	Database string
	// DatabaseURL is that of a PostgreSQL database.
	DatabaseURL Secret
	Listen      string
	// PublicURL is nil when it is not set. Its path has no trailing slash.
	PublicURL      *url.URL
	TrustedProxies []netip.Prefix
	// LoopbackSite is 0 when trust in loopback is switched off.
	LoopbackSite int64
	// OIDC is nil if people sign in with passwords only.
	OIDC      *OIDC
	Audit     Keep
	Events    Keep
	LogLevel  slog.Level
	LogFormat string
	// MetricsListen is "" if /metrics is served on Listen only, to whoever may
	// read there.
	MetricsListen string
	MetricsDetail int
	// NotifyRemind is 0 if nobody is reminded.
	NotifyWindow time.Duration
	NotifyRemind time.Duration

	Revisions KeepRevisions

	// Explained is what of it was set where, for who looks at a running manager.
	Explained []Setting
}

// Keep is how long a log is kept, and how many of its newest rows at most.
type Keep struct {
	Age  time.Duration
	Rows int
}

// KeepRevisions says which revisions of a site are kept: the latest ones, and
// all that are younger.
type KeepRevisions struct {
	Latest  int
	Younger time.Duration
}

// Secret is a text that is never shown.
type Secret string

// String hides the text.
func (Secret) String() string { return "(not shown)" }

// MarshalText hides the text.
func (Secret) MarshalText() ([]byte, error) { return []byte("(not shown)"), nil }

// GoString hides the text.
func (Secret) GoString() string { return "(not shown)" }

// Load reads every setting from flags, environment, the files and defaults, in
// this order of precedence. The error joins all mistakes, each naming its
// setting.
func Load(flags Flags, env map[string]string, files ...string) (Config, error) {
	c, _, err := Explain(flags, env, files...)
	return c, err
}

// inForce drops the file that is the default: there is none beside a DATABASE_URL.
func inForce(settings []Setting) []Setting {
	return slices.DeleteFunc(settings, func(s Setting) bool { return s.Name == "DATABASE" && s.From == byDefault })
}

// Explain is Load, and tells where each value comes from.
func Explain(flags Flags, env map[string]string, files ...string) (Config, []Setting, error) {
	sources, unread := readSources(env, files)
	if cmp.Or(flags.Database, env["DATABASE"]) != "" || givesURL(env) {
		unread = nil // it is known what to work on without them
	}
	var c Config
	r := reader{sources: sources}
	r.readDatabase(&c, flags)
	for _, f := range c.fields(flags) {
		r.read(f)
	}
	signOn, found, wrong := readOIDC(sources, c.PublicURL)
	c.OIDC, r.settings, r.mistakes = signOn, append(r.settings, found...), append(r.mistakes, wrong...)
	return c, r.settings, errors.Join(append([]error{unread}, r.mistakes...)...)
}

// A field is a setting and the field of a Config that it goes to.
type field struct {
	name, flag, fallback string
	parse                func(string) error
}

// fields are all but those of the database and of single sign-on.
func (c *Config) fields(flags Flags) []field {
	return []field{
		{"LISTEN", flags.Listen, Defaults.Listen, into(&c.Listen, parseListen)},
		{"PUBLIC_URL", flags.PublicURL, Defaults.PublicURL, into(&c.PublicURL, parsePublicURL)},
		{"TRUSTED_PROXIES", flags.TrustedProxies, Defaults.TrustedProxies, into(&c.TrustedProxies, parseProxies)},
		{"REVISIONS_KEEP", flags.RevisionsKeep, Defaults.RevisionsKeep, into(&c.Revisions.Younger, days("30d"))},
		{"REVISIONS_MIN", flags.RevisionsMin, Defaults.RevisionsMin, into(&c.Revisions.Latest, number(1, maxLatest))},
		{"LOOPBACK_SITE", flags.LoopbackSite, Defaults.LoopbackSite, into(&c.LoopbackSite, parseSite)},
		{"AUDIT_KEEP", flags.AuditKeep, Defaults.AuditKeep, into(&c.Audit.Age, days("90d"))},
		{"AUDIT_MAX", flags.AuditMax, Defaults.AuditMax, into(&c.Audit.Rows, number(minRows, maxRows))},
		{"EVENTS_KEEP", flags.EventsKeep, Defaults.EventsKeep, into(&c.Events.Age, days("90d"))},
		{"EVENTS_MAX", flags.EventsMax, Defaults.EventsMax, into(&c.Events.Rows, number(minRows, maxRows))},
		{"LOG_LEVEL", flags.LogLevel, Defaults.LogLevel, into(&c.LogLevel, parseLevel)},
		{"LOG_FORMAT", flags.LogFormat, Defaults.LogFormat, into(&c.LogFormat, parseFormat)},
		{"NOTIFY_WINDOW", flags.NotifyWindow, Defaults.NotifyWindow, into(&c.NotifyWindow, parseWindow)},
		{"NOTIFY_REMIND", flags.NotifyRemind, Defaults.NotifyRemind, into(&c.NotifyRemind, parseRemind)},
		{"METRICS_LISTEN", flags.MetricsListen, Defaults.MetricsListen, into(&c.MetricsListen, parseListen)},
		{"METRICS_DETAIL", flags.MetricsDetail, Defaults.MetricsDetail, into(&c.MetricsDetail, parseDetail)},
	}
}

// reader gathers what was found in the sources, and what is wrong with it.
type reader struct {
	sources  []source
	settings []Setting
	mistakes []error
}

func (r *reader) read(f field) {
	value, from := r.find(f.name, f.flag)
	if value == "" {
		value, from = f.fallback, byDefault
	}
	if value == "" {
		return
	}
	r.settings = append(r.settings, Setting{Name: f.name, Value: shown(value), From: from})
	if err := f.parse(value); err != nil {
		r.mistakes = append(r.mistakes, fmt.Errorf("%s: %w%s", f.name, err, in(from)))
	}
}

// find looks at the flag first.
func (r *reader) find(name, flag string) (value, from string) {
	if flag != "" {
		return flag, byFlag
	}
	return find(name, r.sources)
}

func (r *reader) readDatabase(c *Config, flags Flags) {
	r.read(field{"STATE_DIRECTORY", flags.StateDirectory, Defaults.StateDirectory, into(&c.StateDirectory, parsePath)})
	r.read(field{"DATABASE", flags.Database, filepath.Join(c.StateDirectory, "manager.db"), into(&c.Database, parsePath)})
	given, found, err := databaseURL(r.sources)
	if err != nil {
		r.mistakes = append(r.mistakes, err)
	}
	if given == "" {
		return
	}
	c.DatabaseURL = given
	r.settings = append(inForce(r.settings), found)
	if file, from := r.find("DATABASE", flags.Database); file != "" {
		r.mistakes = append(r.mistakes, fmt.Errorf("DATABASE: a file and %s are both given: set one of the two%s", found.Name, in(from)))
	}
}

// in points to the file in which there is something to mend.
func in(from string) string {
	if strings.HasPrefix(from, "/") {
		return " (in " + from + ")"
	}
	return ""
}

// Secure reports whether browsers reach the manager over TLS.
func (c Config) Secure() bool { return c.PublicURL != nil && c.PublicURL.Scheme == "https" }

// AgentsPage is where people see the agents, "" if PUBLIC_URL is not set.
func (c Config) AgentsPage() string {
	if c.PublicURL == nil {
		return ""
	}
	return c.PublicURL.String() + "/agents"
}

// Prefix is the path under which browsers see the manager, "" or "/name".
func (c Config) Prefix() string {
	if c.PublicURL == nil {
		return ""
	}
	return c.PublicURL.Path
}

// into stores what parse makes of a value, if it is right.
func into[T any](target *T, parse func(string) (T, error)) func(string) error {
	return func(value string) error {
		parsed, err := parse(value)
		if err == nil {
			*target = parsed
		}
		return err
	}
}

func parsePath(value string) (string, error) {
	if !filepath.IsAbs(value) {
		return "", fmt.Errorf("%q is not an absolute path", value)
	}
	return filepath.Clean(value), nil
}

// givesURL reports whether the environment names a PostgreSQL database.
func givesURL(env map[string]string) bool {
	url, _, err := databaseURL([]source{{byEnvironment, env}})
	return url != "" || err != nil
}

// databaseURL is DATABASE_URL, or what the file DATABASE_URL_FILE or the systemd
// credential database-url holds. It is no flag: everybody on the host could
// read it then. No error shows what was given: it has a password.
func databaseURL(sources []source) (Secret, Setting, error) {
	name := "DATABASE_URL"
	value, from := find(name, sources)
	if value == "" {
		var err error
		if value, name, from, err = fileOrCredential("DATABASE_URL_FILE", "database-url", sources); err != nil || from == "" {
			return "", Setting{}, err
		}
	}
	parsed, err := url.Parse(value)
	if err != nil || parsed.Scheme != "postgres" && parsed.Scheme != "postgresql" || strings.Trim(parsed.Path, "/") == "" {
		return "", Setting{}, fmt.Errorf("%s: not a URL such as postgres://user:password@host/database (write %%40 for an @ in the password, %%2F for a /)%s", name, in(from))
	}
	return Secret(value), Setting{Name: name, Value: shown(value), From: from}, nil
}

func parseListen(value string) (string, error) {
	host, port, err := net.SplitHostPort(value)
	if err != nil {
		return "", fmt.Errorf("%q is not an address and port such as 127.0.0.1:3000 or [::1]:3000", value)
	}
	if _, err := netip.ParseAddr(host); host != "" && err != nil {
		return "", fmt.Errorf("%q is not an IP address (empty means all)", host)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("%q is not a port from 1 to 65535", port)
	}
	return value, nil
}

func parsePublicURL(value string) (*url.URL, error) {
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "" || u.RawPath != "" {
		return nil, fmt.Errorf("%q is not a URL such as https://manager.example.com or https://example.com/manager", value)
	}
	u.Host = withoutDefaultPort(u.Scheme, strings.ToLower(u.Host))
	u.Path = strings.TrimRight(u.Path, "/")
	if strings.ContainsAny(u.Path, " ;\"'<>\\") || strings.Contains(u.Path, "//") || strings.Contains(u.Path, "..") {
		return nil, fmt.Errorf("%q is not a plain path", u.Path)
	}
	return u, nil
}

// withoutDefaultPort writes a host as browsers do in Host and Origin.
func withoutDefaultPort(scheme, host string) string {
	if scheme == "https" {
		return strings.TrimSuffix(host, ":443")
	}
	return strings.TrimSuffix(host, ":80")
}

func parseProxies(value string) ([]netip.Prefix, error) {
	var proxies []netip.Prefix
	for part := range strings.SplitSeq(value, ",") {
		part = strings.TrimSpace(part)
		prefix, err := netip.ParsePrefix(part)
		if err != nil {
			return nil, fmt.Errorf("%q is not a network such as 192.0.2.0/24 or 192.0.2.7/32", part)
		}
		proxies = append(proxies, prefix.Masked())
	}
	return proxies, nil
}

func parseSite(value string) (int64, error) {
	if strings.EqualFold(value, "off") {
		return 0, nil
	}
	site, err := strconv.ParseInt(value, 10, 64)
	if err != nil || site < 0 {
		return 0, fmt.Errorf("%q is not a site number, 0 or off", value)
	}
	return site, nil
}

// The bounds of retention. Nobody wants a log of nothing, and what never ends
// fills the disk.
const (
	maxDays   = 3650
	maxLatest = 100_000
	minRows   = 1000
	maxRows   = 100_000_000
)

// days reads a number of days; an error shows the example.
func days(example string) func(string) (time.Duration, error) {
	return func(value string) (time.Duration, error) {
		days, err := strconv.Atoi(strings.TrimSuffix(value, "d"))
		if err != nil || days < 1 || days > maxDays {
			return 0, fmt.Errorf("%q is not a number of days such as %s, from 1d to %dd", value, example, maxDays)
		}
		return time.Duration(days) * 24 * time.Hour, nil
	}
}

func number(least, most int) func(string) (int, error) {
	return func(value string) (int, error) {
		n, err := strconv.Atoi(value)
		if err != nil || n < least || n > most {
			return 0, fmt.Errorf("%q is not a number from %d to %d", value, least, most)
		}
		return n, nil
	}
}

func parseLevel(value string) (slog.Level, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(value)); err != nil {
		return 0, fmt.Errorf("%q is not debug, info, warn or error", value)
	}
	return level, nil
}

func parseFormat(value string) (string, error) {
	switch value {
	case LogAuto, LogText, LogJSON:
		return value, nil
	}
	return "", fmt.Errorf("%q is not auto, text or json", value)
}

func parseDetail(value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is not a number of sites and agents, 0 or more", value)
	}
	return n, nil
}

// maxWindow bounds how late a notification may be.
const maxWindow = time.Hour

func parseWindow(value string) (time.Duration, error) {
	window, err := time.ParseDuration(value)
	if err != nil || window < 0 || window > maxWindow {
		return 0, fmt.Errorf("%q is not a duration such as 30s or 5m, up to 1h", value)
	}
	return window, nil
}

func parseRemind(value string) (time.Duration, error) {
	if strings.EqualFold(value, "off") {
		return 0, nil
	}
	remind, err := time.ParseDuration(value)
	if err != nil || remind < time.Minute {
		return 0, fmt.Errorf("%q is not a duration such as 12h, 1m or more, or off", value)
	}
	return remind, nil
}
