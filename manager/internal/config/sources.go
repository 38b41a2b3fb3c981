package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"opensource.internal/agent/envfile"
)

// File is where an administrator configures the manager: the EnvironmentFile=
// of its unit.
const File = "/etc/opensource-manager/manager.env"

// The places of settings that are no files.
const (
	byFlag        = "the command line"
	byEnvironment = "the environment"
	byDefault     = "the default"
)

// Setting is one setting and where its value comes from.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"` // fit to be shown: without passwords
	From  string `json:"from"`  // a file, or where else it comes from
}

// source is a place in which settings are found.
type source struct {
	name   string
	values map[string]string
}

// readSources returns the environment and, below it, the files. These are read
// only when a person started the program: systemd has read them already. A file
// that is not there is none; one that cannot be read is a mistake.
func readSources(env map[string]string, files []string) ([]source, error) {
	sources := []source{{byEnvironment, env}}
	if envfile.ReadBySystemd(env) {
		return sources, nil
	}
	var mistakes []error
	for _, name := range files {
		content, err := os.ReadFile(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, fs.ErrPermission):
			mistakes = append(mistakes, fmt.Errorf("%s: %w: the settings of the service are in there; run the command as root (with sudo)", name, fs.ErrPermission))
		case err != nil:
			mistakes = append(mistakes, fmt.Errorf("read settings: %w", err))
		default:
			sources = append(sources, source{name, envfile.Parse(string(content))})
		}
	}
	return sources, errors.Join(mistakes...)
}

// find returns the value of a setting, and where it is from. An empty value
// counts as not given.
func find(name string, sources []source) (value, from string) {
	for _, source := range sources {
		if value := source.values[name]; value != "" {
			return value, source.name
		}
	}
	return "", ""
}

// fileOrCredential returns what the file that a setting names holds, or else the
// systemd credential; where that is, and what to call it. The path is empty if
// there is none.
func fileOrCredential(setting, credential string, sources []source) (content, name, path string, err error) {
	name = setting
	path, _ = find(setting, sources)
	if folder, _ := find("CREDENTIALS_DIRECTORY", sources); path == "" && folder != "" {
		name, path = "credential "+credential, filepath.Join(folder, credential)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return "", "", "", nil
		}
	}
	if path == "" {
		return "", "", "", nil
	}
	read, err := os.ReadFile(path)
	if err != nil {
		return "", "", "", fmt.Errorf("%s: %w", name, err)
	}
	return strings.TrimSpace(string(read)), name, path, nil
}

// shown is a value without the password that may be in it.
func shown(value string) string {
	u, err := url.Parse(value)
	if err != nil || u.User == nil && u.RawQuery == "" {
		return value
	}
	query := u.Query()
	for _, name := range []string{"password", "sslpassword"} {
		if query.Has(name) {
			query.Set(name, "xxxxx")
			u.RawQuery = query.Encode()
		}
	}
	return u.Redacted()
}
