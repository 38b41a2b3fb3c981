//go:build e2e

package standin

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// EarlierVersion is a version of the earlier generation.
const EarlierVersion = "2026.4.2"

// EarlierAgent builds a package like the earlier generation's agent: the same
// name, units and state folder, units in a folder given by the caller, which
// are conffiles if that is /etc/systemd/system.
func EarlierAgent(t testing.TB, unitFolder string) (deb string) {
	t.Helper()
	tree := filepath.Join(t.TempDir(), "earlier")
	files := map[string]string{
		"DEBIAN/control": "Package: opensource-agent\nVersion: " + EarlierVersion +
			"\nArchitecture: all\nMaintainer: stand-in <root@invalid>\nDescription: stand-in of the earlier generation\n",
		"DEBIAN/postinst": "#!/bin/sh\nset -e\nsystemctl daemon-reload\nsystemctl enable --now opensource-agent.timer\n",
		"DEBIAN/prerm":    "#!/bin/sh\nset -e\nif [ \"$1\" = remove ]; then systemctl disable --now opensource-agent.timer; fi\n",
		"opt/opensource-server/agent/run": "#!/bin/sh\n" +
			"mkdir -p /var/lib/opensource-agent\n" +
			"printf '{\"etag\":\"\\\\\"earlier\\\\\"\",\"services\":{}}' >/var/lib/opensource-agent/state.json\n",
		unitFolder + "/opensource-agent.service": "[Unit]\nDescription=Earlier agent\n[Service]\nType=oneshot\n" +
			"EnvironmentFile=-/etc/environment\nExecStart=/opt/opensource-server/agent/run\n",
		unitFolder + "/opensource-agent.timer": "[Unit]\nDescription=Earlier timer\n[Timer]\nOnBootSec=1s\nOnUnitActiveSec=30s\nAccuracySec=1s\n" +
			"[Install]\nWantedBy=timers.target\n",
	}
	if strings.HasPrefix(unitFolder, "etc/") {
		files["DEBIAN/conffiles"] = "/" + unitFolder + "/opensource-agent.service\n/" + unitFolder + "/opensource-agent.timer\n"
	}
	for name, content := range files {
		write(t, filepath.Join(tree, name), content)
	}
	return build(t, tree, "opensource-agent_"+EarlierVersion+"_all.deb")
}

// Newer repacks a package under a higher version, with nothing else changed.
func Newer(t testing.TB, deb, version string) string {
	t.Helper()
	tree := filepath.Join(t.TempDir(), "newer")
	run(t, "dpkg-deb", "--raw-extract", deb, tree)
	control := filepath.Join(tree, "DEBIAN/control")
	content, err := os.ReadFile(control)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(content)) {
		if strings.HasPrefix(line, "Version:") {
			line = "Version: " + version + "\n"
		}
		lines = append(lines, line)
	}
	if err := os.WriteFile(control, []byte(strings.Join(lines, "")), 0o644); err != nil {
		t.Fatal(err)
	}
	return build(t, tree, strings.SplitN(filepath.Base(deb), "_", 2)[0]+"_"+version+".deb")
}

func write(t testing.TB, path, content string) {
	t.Helper()
	mode := os.FileMode(0o644)
	if strings.HasPrefix(content, "#!") {
		mode = 0o755
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func build(t testing.TB, tree, name string) string {
	t.Helper()
	deb := filepath.Join(t.TempDir(), name)
	run(t, "dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", tree, deb)
	return deb
}

func run(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}
