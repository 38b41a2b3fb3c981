//go:build e2e

package machine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Suite is a release of Debian.
type Suite string

// The releases the packages are made for.
const (
	Debian12 Suite = "bookworm"
	Debian13 Suite = "trixie"
)

// packages is what a site's host has before our packages come: all they
// depend on, since a booted machine reaches no mirror, and a few tools.
var packages = []string{
	"systemd-sysv", "dbus", "nginx", "libnginx-mod-stream", "dnsmasq", "ssl-cert",
	"curl", "ca-certificates", "iproute2", "openssl", "procps", "passwd",
}

// buildTimeout bounds the making of one root. It takes half a minute.
const buildTimeout = 10 * time.Minute

// cacheFolder is where roots are kept between runs.
func cacheFolder() string {
	if cache, err := os.UserCacheDir(); err == nil {
		return filepath.Join(cache, "opensource-server", "e2e")
	}
	return filepath.Join(os.TempDir(), "opensource-server-e2e")
}

// root is the folder of a suite's root. Another list of packages or another
// mirror is another root.
func root(suite Suite) (string, error) {
	mirrors, err := mirrors(suite)
	if err != nil {
		return "", err
	}
	recipe := sha256.Sum256([]byte(strings.Join(append(mirrors, packages...), "\n")))
	return filepath.Join(cacheFolder(), string(suite)+"-"+hex.EncodeToString(recipe[:6])), nil
}

// BuildRoots makes the roots of the suites that are not there yet, at the same
// time. It needs a mirror and must run outside the sandbox.
func BuildRoots(suites ...Suite) error {
	done := make(chan error)
	for _, suite := range suites {
		go func() { done <- buildRoot(suite) }()
	}
	var errs []error
	for range suites {
		errs = append(errs, <-done)
	}
	return errors.Join(errs...)
}

func buildRoot(suite Suite) error {
	target, err := root(suite)
	if err != nil {
		return fmt.Errorf("build root of %s: %w", suite, err)
	}
	if _, err := os.Stat(target); err == nil {
		return nil
	}
	if err := os.MkdirAll(cacheFolder(), 0o755); err != nil {
		return fmt.Errorf("build root of %s: %w", suite, err)
	}
	unfinished, err := os.MkdirTemp(cacheFolder(), "unfinished-"+string(suite)+"-")
	if err != nil {
		return fmt.Errorf("build root of %s: %w", suite, err)
	}
	defer os.RemoveAll(unfinished)
	if err := os.Chmod(unfinished, 0o755); err != nil {
		return fmt.Errorf("build root of %s: %w", suite, err)
	}
	if err := bootstrap(suite, unfinished); err != nil {
		return fmt.Errorf("build root of %s: %w", suite, err)
	}
	if err := os.Rename(unfinished, target); err != nil {
		return fmt.Errorf("build root of %s: %w", suite, err)
	}
	return removeOthers(suite, target)
}

// removeOthers deletes the roots of a suite that were made by another recipe.
func removeOthers(suite Suite, current string) error {
	roots, err := filepath.Glob(filepath.Join(cacheFolder(), string(suite)+"-*"))
	if err != nil {
		return err
	}
	for _, root := range roots {
		if root == current {
			continue
		}
		if err := os.RemoveAll(root); err != nil {
			return fmt.Errorf("remove old root: %w", err)
		}
	}
	return nil
}

func bootstrap(suite Suite, folder string) error {
	mirrors, err := mirrors(suite)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	args := []string{
		"--variant=minbase", "--mode=root", "--skip=check/empty", "--include=" + strings.Join(packages, ","),
		// The settings of this machine's apt hold for its mirror too.
		"--aptopt=Acquire::Languages \"none\"",
		"--aptopt=Acquire::Check-Valid-Until \"" + aptSetting("Acquire::Check-Valid-Until", "true") + "\"",
		"--aptopt=Acquire::Check-Date \"" + aptSetting("Acquire::Check-Date", "true") + "\"",
		"--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
		"--keyring=/usr/share/keyrings/debian-archive-keyring.gpg",
		string(suite), folder,
	}
	if proxy := aptSetting("Acquire::http::Proxy", ""); proxy != "" {
		args = append([]string{"--aptopt=Acquire::http::Proxy \"" + proxy + "\""}, args...)
	}
	command := exec.CommandContext(ctx, "mmdebstrap", append(args, mirrors...)...)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("mmdebstrap: %w\n%s", err, out)
	}
	return nil
}

// aptSetting reads one setting of this machine's apt.
func aptSetting(name, fallback string) string {
	out, err := exec.Command("apt-config", "shell", "VALUE", name).Output()
	value := strings.Trim(strings.TrimPrefix(strings.TrimSpace(string(out)), "VALUE="), "'")
	if err != nil || value == "" {
		return fallback
	}
	return value
}

// mirrors returns the lines of a sources.list for a suite, with the mirrors
// that this machine's apt uses for its own.
func mirrors(suite Suite) ([]string, error) {
	var archive, security string
	for _, uri := range aptURIs() {
		switch {
		case strings.Contains(uri, "debian-security") && security == "":
			security = uri
		case strings.HasSuffix(strings.TrimSuffix(uri, "/"), "/debian") && archive == "":
			archive = uri
		}
	}
	if archive == "" {
		return nil, errors.New("/etc/apt names no Debian mirror")
	}
	lines := []string{
		fmt.Sprintf("deb %s %s main", archive, suite),
		fmt.Sprintf("deb %s %s-updates main", archive, suite),
	}
	if security != "" {
		lines = append(lines, fmt.Sprintf("deb %s %s-security main", security, suite))
	}
	return lines, nil
}

// aptURIs finds every URI in the lists of sources, in either format
// (sources.list(5)).
func aptURIs() []string {
	files, _ := filepath.Glob("/etc/apt/sources.list.d/*")
	var uris []string
	for _, file := range append([]string{"/etc/apt/sources.list"}, files...) {
		content, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(content)) {
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, "deb ") && !strings.HasPrefix(line, "URIs:") {
				continue
			}
			for _, field := range strings.Fields(line) {
				if strings.Contains(field, "://") {
					uris = append(uris, field)
				}
			}
		}
	}
	return uris
}
