package config

import (
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// bySystemd makes Load believe that systemd started it, so that no file of the
// machine the tests run on is read.
func bySystemd(env ...string) []string {
	return append(env, "SYSTEMD_EXEC_PID="+strconv.Itoa(os.Getpid()))
}

func TestLoad(t *testing.T) {
	c, err := Load(Flags{}, bySystemd("SITE_ID=7", "MANAGER_URL=https://manager.example.com/prefix", `API_KEY=a#b$c"d=e`, "MANAGER_HOSTNAME=Manager.Example.com", "STATE_DIRECTORY=/var/lib/x:/var/lib/y"))
	if err != nil {
		t.Fatal(err)
	}
	if c.SiteID != 7 || c.ManagerURL.String() != "https://manager.example.com/prefix" || c.APIKey != `a#b$c"d=e` ||
		c.ManagerHostname != "manager.example.com" || c.StateDirectory != "/var/lib/x" || c.LogLevel != slog.LevelInfo {
		t.Errorf("config = %+v", c)
	}
}

func TestLoadNamesEveryMistake(t *testing.T) {
	_, err := Load(Flags{LogLevel: "loud"}, bySystemd("SITE_ID=1abc", "MANAGER_URL=manager:3000", "API_KEY=a b", "STATE_DIRECTORY=relative", "MANAGER_CA_FILE=/nonexistent", "MANAGER_HOSTNAME=a;b", "REMOVAL_GUARD=half", "SITE_PROBES=true"))
	if err == nil {
		t.Fatal("no error")
	}
	for _, name := range []string{"SITE_ID", "MANAGER_URL", "API_KEY", "STATE_DIRECTORY", "LOG_LEVEL", "MANAGER_CA_FILE", "MANAGER_HOSTNAME", "REMOVAL_GUARD", "SITE_PROBES"} {
		if !strings.Contains(err.Error(), name+": ") {
			t.Errorf("%s is not named in:\n%v", name, err)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	for _, bad := range []string{
		"SITE_ID=0", "SITE_ID=-1", "SITE_ID=1.5", "SITE_ID= 1", "SITE_ID=99999999999999999999",
		"MANAGER_URL=ftp://a", "MANAGER_URL=https://", "MANAGER_URL=https://u:p@a", "MANAGER_URL=https://a?b", "MANAGER_URL=://",
		"API_KEY=a\nb", "API_KEY=ä", "API_KEY_FILE=/nonexistent",
		"REMOVAL_GUARD=0", "REMOVAL_GUARD=100", "REMOVAL_GUARD=-1", "REMOVAL_GUARD=0.5", "REMOVAL_GUARD=50 %", "REMOVAL_GUARD=Off", "REMOVAL_GUARD=no", "REMOVAL_GUARD=50%%",
		"SITE_PROBES=yes", "SITE_PROBES=1", "SITE_PROBES=On",
	} {
		if c, err := Load(Flags{}, bySystemd("SITE_ID=1", "MANAGER_URL=http://a", bad)); err == nil {
			t.Errorf("%q gave %+v", bad, c)
		}
	}
}

func TestRemovalGuard(t *testing.T) {
	for value, want := range map[string]int{"": 50, "off": 0, "1": 1, "25%": 25, "99%": 99} {
		if c, err := Load(Flags{}, bySystemd("SITE_ID=1", "MANAGER_URL=http://a", "REMOVAL_GUARD="+value)); err != nil || c.RemovalGuard != want {
			t.Errorf("%q: %d, %v, want %d", value, c.RemovalGuard, err, want)
		}
	}
}

func TestSiteProbes(t *testing.T) {
	for value, want := range map[string]bool{"": false, "off": false, "on": true} {
		if c, err := Load(Flags{}, bySystemd("SITE_ID=1", "MANAGER_URL=http://a", "SITE_PROBES="+value)); err != nil || c.SiteProbes != want {
			t.Errorf("%q: %t, %v, want %t", value, c.SiteProbes, err, want)
		}
	}
}

func TestLoadLocalNeedsNoManager(t *testing.T) {
	c, err := LoadLocal(Flags{}, bySystemd("LOG_LEVEL=warn", "SITE_ID=1abc"))
	if want := (Local{StateDirectory: "/var/lib/opensource-agent", LogLevel: slog.LevelWarn, BySystemd: true}); err != nil || c != want {
		t.Errorf("got %+v, %v, want %+v", c, err, want)
	}
	_, err = LoadLocal(Flags{LogLevel: "loud"}, bySystemd("STATE_DIRECTORY=relative"))
	if err == nil || !strings.Contains(err.Error(), "LOG_LEVEL") || !strings.Contains(err.Error(), "STATE_DIRECTORY") {
		t.Errorf("error = %v, want both mistakes", err)
	}
}

func TestLoadRenderingNeedsNothing(t *testing.T) {
	if c, err := LoadRendering(Flags{}, bySystemd("SITE_ID=1abc")); err != nil || c != (Rendering{}) {
		t.Errorf("got %+v, %v", c, err)
	}
	c, err := LoadRendering(Flags{}, bySystemd("MANAGER_URL=http://localhost:3000", "MANAGER_HOSTNAME=m.example.com"))
	if want := (Rendering{ManagerUpstream: "127.0.0.1:3000", ManagerHostname: "m.example.com"}); err != nil || c != want {
		t.Errorf("got %+v, %v, want %+v", c, err, want)
	}
	if _, err := LoadRendering(Flags{ManagerURL: "manager"}, bySystemd("MANAGER_HOSTNAME=a;b")); err == nil ||
		!strings.Contains(err.Error(), "MANAGER_URL") || !strings.Contains(err.Error(), "MANAGER_HOSTNAME") {
		t.Errorf("error = %v, want both mistakes", err)
	}
}

func TestTheHostItselfIsNoRoot(t *testing.T) {
	if c, err := Load(Flags{Root: "/"}, bySystemd("SITE_ID=1", "MANAGER_URL=http://a")); err == nil || !strings.Contains(err.Error(), "--root") {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestNotConfiguredYetIsOneLine(t *testing.T) {
	_, err := Load(Flags{}, bySystemd())
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), File) {
		t.Errorf("error = %v", err)
	}
}

func TestByHandTheUnitsFilesAreRead(t *testing.T) {
	root := t.TempDir()
	write := func(name, content string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("/etc/environment", "SITE_ID=1\nMANAGER_URL=http://one\nLOG_LEVEL=debug\nhttps_proxy=\"http://proxy:3128\"\n")
	write("/run/opensource-agent/environment", "API_KEY='run key'\nSITE_ID=2\n")
	write(File, "SITE_ID=3\nAPI_KEY=\"env#key\"\n")
	c, err := Load(Flags{Root: root}, []string{"MANAGER_URL=http://real"})
	if err != nil {
		t.Fatal(err)
	}
	if c.SiteID != 3 || c.ManagerURL.Host != "real" || c.APIKey != "env#key" || c.LogLevel != slog.LevelDebug {
		t.Errorf("config = %+v", c)
	}
	if len(c.Proxies) != 1 || c.Proxies["https_proxy"] != "http://proxy:3128" {
		t.Errorf("proxies = %v", c.Proxies)
	}
	if want := root + "/var/lib/opensource-agent"; c.StateDirectory != want {
		t.Errorf("state directory = %s, want %s", c.StateDirectory, want)
	}
	if c, err := Load(Flags{Root: root, SiteID: "9"}, nil); err != nil || c.SiteID != 9 {
		t.Errorf("a flag must win: %+v, %v", c, err)
	}
}

func TestKeySources(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "api-key"), []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{"API_KEY_FILE=" + filepath.Join(dir, "api-key"), "CREDENTIALS_DIRECTORY=" + dir} {
		if c, err := Load(Flags{}, bySystemd("SITE_ID=1", "MANAGER_URL=http://a", source)); err != nil || c.APIKey != "secret" {
			t.Errorf("%s: key %q, %v", source, c.APIKey, err)
		}
	}
	if c, err := Load(Flags{}, bySystemd("SITE_ID=1", "MANAGER_URL=http://a", "CREDENTIALS_DIRECTORY="+t.TempDir())); err != nil || c.APIKey != "" {
		t.Errorf("no credential: key %q, %v", c.APIKey, err)
	}
}

func TestLoopbackUpstream(t *testing.T) {
	for in, want := range map[string]string{
		"http://localhost:3000":    "127.0.0.1:3000",
		"http://127.0.0.1":         "",
		"http://127.0.0.1:8080/x":  "127.0.0.1:8080",
		"http://localhost:443":     "",
		"http://[::1]:3000":        "127.0.0.1:3000",
		"https://localhost":        "",
		"https://localhost:8443":   "",
		"https://manager.example":  "",
		"http://localhost.example": "",
	} {
		c, err := Load(Flags{}, bySystemd("SITE_ID=1", "MANAGER_URL="+in))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.LoopbackUpstream(); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
