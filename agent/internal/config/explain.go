package config

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The places of settings that are no files.
const (
	byFlag        = "the command line"
	byEnvironment = "the environment"
	byDefault     = "the default"
)

// Setting is one setting that somebody has given a value.
type Setting struct {
	Name  string
	Value string // fit to be shown: of a key only that it is set
	From  string // a file, or where else it comes from
	// Elsewhere is what the timer's passes find instead, if that is another
	// value: they know nothing of a command line and a shell's variables.
	Elsewhere *string
}

// Explain returns every setting that has a value and is no default, and the
// files that hold a key. It reads what Load reads, and tells no mistakes.
func Explain(flags Flags, environ []string) (settings []Setting, keyFiles []string) {
	r, bySystemd, err := open(flags, environ)
	if err != nil {
		return nil, nil
	}
	r.config(bySystemd)
	for _, name := range r.asked {
		value, from := find(name, r.sources)
		if value == "" || from == byDefault || name == "CREDENTIALS_DIRECTORY" {
			continue
		}
		setting := Setting{Name: name, Value: shown(name, value), From: from}
		if !bySystemd {
			setting.compare(r.sources, value)
		}
		settings = append(settings, setting)
	}
	for _, source := range r.sources {
		if source.name != byFlag && source.name != byEnvironment && source.values["API_KEY"] != "" {
			keyFiles = append(keyFiles, source.name)
		}
	}
	if file := r.get("API_KEY_FILE"); file != "" {
		keyFiles = append(keyFiles, file)
	}
	return settings, keyFiles
}

// compare notes what the timer's passes find. A variable of the shell that says
// the same as a file, as /etc/environment does at every sign-in, comes from it.
func (s *Setting) compare(sources []source, value string) {
	if s.From != byFlag && s.From != byEnvironment {
		return
	}
	files := slices.DeleteFunc(slices.Clone(sources), func(s source) bool { return s.name == byFlag || s.name == byEnvironment })
	theirs, from := find(s.Name, files)
	if theirs == value {
		s.From = from
		return
	}
	other := "none"
	switch {
	case theirs == "":
	case s.Name == "API_KEY":
		other = "another one, from " + from
	default:
		other = shown(s.Name, theirs) + ", from " + from
	}
	s.Elsewhere = &other
}

// shown is a value without what is secret in it.
func shown(name, value string) string {
	if name == "API_KEY" {
		return "set"
	}
	if info := userInfo(value); info != "" {
		return strings.Replace(value, info, "…", 1)
	}
	return value
}

// userInfo is the user and password in an address, which may lack its scheme.
func userInfo(value string) string {
	rest := value
	if _, after, found := strings.Cut(value, "//"); found {
		rest = after
	}
	if at := strings.LastIndexByte(rest, '@'); at > 0 {
		return rest[:at]
	}
	return ""
}

// Secrets returns what must be shown to nobody, wherever it is set: keys, also
// those that another one takes the place of, and passwords in addresses.
func Secrets(flags Flags, environ []string) []string {
	r, bySystemd, err := open(flags, environ)
	if err != nil {
		return nil
	}
	if bySystemd {
		r.readFiles()
	}
	r.config(bySystemd)
	var found []string
	for _, source := range r.sources {
		files := []string{source.values["API_KEY_FILE"]}
		if folder := source.values["CREDENTIALS_DIRECTORY"]; folder != "" {
			files = append(files, filepath.Join(folder, "api-key"))
		}
		for _, file := range files {
			if content, err := os.ReadFile(file); err == nil {
				found = append(found, strings.TrimSpace(string(content)))
			}
		}
		found = append(found, source.values["API_KEY"])
		for _, name := range r.asked {
			info := userInfo(source.values[name])
			_, password, _ := strings.Cut(info, ":")
			found = append(found, info, password)
			if plain, err := url.PathUnescape(password); err == nil {
				found = append(found, plain)
			}
		}
	}
	return slices.DeleteFunc(found, func(secret string) bool { return secret == "" })
}
