package services

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// unitArguments returns the arguments that Debian's dnsmasq unit adds to a
// test, from the variables in its defaults file, as the function checkconfig
// of /usr/share/dnsmasq/init-system-common does: CONFIG_DIR becomes -7, and
// DNSMASQ_OPTS is appended word by word. Without the file there are none.
//
// The file is a shell script. Of it, plain assignments are understood; one
// that the shell would expand cannot be foreseen and is left out.
func unitArguments(path string) ([]string, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the options of dnsmasq's unit: %w", err)
	}
	variables := assignments(content)
	var args []string
	if dir := variables["CONFIG_DIR"]; dir != "" {
		args = append(args, "-7", dir)
	}
	options := strings.Fields(variables["DNSMASQ_OPTS"])
	for _, option := range options {
		if strings.HasPrefix(option, "--conf-file") || strings.HasPrefix(option, "-C") {
			return nil, fmt.Errorf("DNSMASQ_OPTS in %s has the option %s: dnsmasq would not read the file that is managed here; remove the option", path, option)
		}
	}
	return append(args, options...), nil
}

// assignments reads the lines NAME=VALUE of a shell script, with one level of
// quotes around the value or none.
func assignments(script []byte) map[string]string {
	variables := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(script))
	for lines.Scan() {
		line := strings.TrimPrefix(strings.TrimSpace(lines.Text()), "export ")
		name, value, found := strings.Cut(line, "=")
		if !found || strings.ContainsAny(name, " \t#") {
			continue
		}
		if value, plain := plainValue(value); plain {
			variables[name] = value
		}
	}
	return variables
}

// plainValue unquotes the right side of an assignment. It is not plain if the
// shell would do more with it than that.
func plainValue(value string) (string, bool) {
	if value == "" {
		return "", true
	}
	if quote := value[0]; quote == '"' || quote == '\'' {
		inner, rest, closed := strings.Cut(value[1:], string(quote))
		rest = strings.TrimSpace(rest)
		expands := quote == '"' && strings.ContainsAny(inner, "$`\\")
		return inner, closed && !expands && (rest == "" || rest[0] == '#')
	}
	word, rest, _ := strings.Cut(value, " ")
	rest = strings.TrimSpace(rest)
	return word, !strings.ContainsAny(word, "$`\\\"';&|") && (rest == "" || rest[0] == '#')
}
