package config

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDefaults(t *testing.T) {
	c, err := Load(Flags{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		StateDirectory: "/var/lib/opensource-manager",
		Database:       "/var/lib/opensource-manager/manager.db",
		Listen:         "127.0.0.1:3000",
		Revisions:      KeepRevisions{Latest: 50, Younger: 30 * 24 * time.Hour},
		LoopbackSite:   1,
		Audit:          Keep{Age: 365 * 24 * time.Hour, Rows: 1_000_000},
		Events:         Keep{Age: 90 * 24 * time.Hour, Rows: 200_000},
		LogLevel:       slog.LevelInfo,
		LogFormat:      "auto",
		MetricsDetail:  500,
		NotifyWindow:   time.Minute,
		NotifyRemind:   24 * time.Hour,
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
	if c.Secure() || c.Prefix() != "" {
		t.Errorf("Secure() = %v, Prefix() = %q without PUBLIC_URL", c.Secure(), c.Prefix())
	}
}

func TestPrecedence(t *testing.T) {
	env := map[string]string{
		"STATE_DIRECTORY": "/srv/state",
		"LISTEN":          "127.0.0.1:4000",
		"LOG_LEVEL":       "debug",
		"LOOPBACK_SITE":   "OFF",
		"TRUSTED_PROXIES": "192.0.2.7/24, 2001:db8::/32",
		"PUBLIC_URL":      "https://Example.com:443/manager/",
	}
	c, err := Load(Flags{Listen: "[::1]:5000"}, env)
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "[::1]:5000" {
		t.Errorf("Listen = %q: the flag must win over the environment", c.Listen)
	}
	if c.Database != "/srv/state/manager.db" {
		t.Errorf("Database = %q: it must follow the state directory", c.Database)
	}
	if c.LogLevel != slog.LevelDebug || c.LoopbackSite != 0 {
		t.Errorf("LogLevel = %v, LoopbackSite = %d", c.LogLevel, c.LoopbackSite)
	}
	proxies := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")}
	if len(c.TrustedProxies) != 2 || c.TrustedProxies[0] != proxies[0] || c.TrustedProxies[1] != proxies[1] {
		t.Errorf("TrustedProxies = %v", c.TrustedProxies)
	}
	if !c.Secure() || c.Prefix() != "/manager" || c.PublicURL.Host != "example.com" {
		t.Errorf("PublicURL = %v, Secure() = %v, Prefix() = %q", c.PublicURL, c.Secure(), c.Prefix())
	}
}

func TestEveryMistakeIsNamedAtOnce(t *testing.T) {
	bad := map[string]string{
		"STATE_DIRECTORY": "relative/state",
		"DATABASE":        "manager.db",
		"LISTEN":          "localhost:3000",
		"REVISIONS_KEEP":  "0d",
		"REVISIONS_MIN":   "0",
		"PUBLIC_URL":      "example.com",
		"TRUSTED_PROXIES": "192.0.2.0/24,nonsense",
		"LOOPBACK_SITE":   "1abc",
		"AUDIT_KEEP":      "0d",
		"AUDIT_MAX":       "999",
		"EVENTS_KEEP":     "forever",
		"EVENTS_MAX":      "1e6",
		"LOG_LEVEL":       "loud",
		"LOG_FORMAT":      "xml",
		"METRICS_LISTEN":  "9300",
		"METRICS_DETAIL":  "many",
		"NOTIFY_WINDOW":   "soon",
		"NOTIFY_REMIND":   "never",
	}
	_, err := Load(Flags{}, bad)
	if err == nil {
		t.Fatal("no error")
	}
	for name := range bad {
		if !strings.Contains(err.Error(), name+": ") {
			t.Errorf("%s is not named in %q", name, err)
		}
	}
}

func TestDatabaseURL(t *testing.T) {
	const given = "postgres://manager:s3cret@db.example.com/manager"
	folder := t.TempDir()
	file := filepath.Join(folder, "database-url")
	if err := os.WriteFile(file, []byte(given+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, env := range map[string]map[string]string{
		"variable":   {"DATABASE_URL": given, "DATABASE_URL_FILE": "/nowhere"},
		"file":       {"DATABASE_URL_FILE": file},
		"credential": {"CREDENTIALS_DIRECTORY": folder},
	} {
		c, err := Load(Flags{}, env)
		if err != nil || string(c.DatabaseURL) != given {
			t.Errorf("%s: %q, %v", name, string(c.DatabaseURL), err)
		}
		for _, form := range []string{"%v", "%+v", "%#v", "%s"} {
			if shown := fmt.Sprintf(form, c); strings.Contains(shown, "s3cret") {
				t.Errorf("%s: %s shows %s", name, form, shown)
			}
		}
	}
	if c, err := Load(Flags{}, map[string]string{"CREDENTIALS_DIRECTORY": t.TempDir()}); err != nil || c.DatabaseURL != "" {
		t.Errorf("other credentials: %v", err)
	}
	for name, env := range map[string]map[string]string{
		"DATABASE_URL_FILE": {"DATABASE_URL_FILE": "/nowhere"},
		"DATABASE":          {"DATABASE": "/srv/manager.db", "DATABASE_URL": given},
	} {
		if _, err := Load(Flags{}, env); err == nil || !strings.Contains(err.Error(), name+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, value := range []string{
		"host=db password=s3cret", "mysql://u:s3cret@db/manager", "postgres://u:s3cret@db", "postgres://u:s3cret@db/",
		"postgres://u:s3cret@db:port/manager", "postgres://u:s3/cret@db/manager", "postgres://u:s3cret%zz@db/manager",
	} {
		_, err := Load(Flags{}, map[string]string{"DATABASE_URL": value})
		if err == nil || strings.Contains(err.Error(), "cret") {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func TestRefusedValues(t *testing.T) {
	for name, values := range map[string][]string{
		"LISTEN":          {"3000", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:http", "::1:3000:"},
		"PUBLIC_URL":      {"ftp://example.com", "https://", "https://user:pw@example.com", "https://example.com/?a=b", "https://example.com/a#b", "https://example.com/a b", "https://example.com/../x", "https://example.com/a//b"},
		"TRUSTED_PROXIES": {"192.0.2.1", "192.0.2.0/33", ",", "192.0.2.0/24,"},
		"NOTIFY_WINDOW":   {"-1s", "61m", "60"},
		"NOTIFY_REMIND":   {"1s", "-1h", "24"},
		"METRICS_DETAIL":  {"-1", "1.5", "off"},
		"METRICS_LISTEN":  {"localhost:9300", "9300"},
		"LOG_FORMAT":      {"JSON", "logfmt"},
		"LOOPBACK_SITE":   {"-1", "one", "1.0", "99999999999999999999"},
	} {
		for _, value := range values {
			if _, err := Load(Flags{}, map[string]string{name: value}); err == nil {
				t.Errorf("%s=%q was accepted", name, value)
			}
		}
	}
}
