package envfile

import (
	"errors"
	"strings"
)

// Assignment is one setting of an environment file; without a value it is taken
// out of the file.
type Assignment struct{ Name, Value string }

// Edit returns the content of an environment file with these settings. Each
// takes the place of its former line; what is new comes last, after a comment.
// Everything else stays as it is, to the byte. A file that ends within a quoted
// or continued value cannot be added to.
func Edit(content, comment string, settings ...Assignment) (string, error) {
	open := errors.New("the last value has no closing quote, or ends with a backslash: mend that line first")
	if strings.HasSuffix(content, `\`) {
		return "", open
	}
	edited := edit(content, comment, settings)
	found := Parse(edited)
	for _, setting := range settings {
		if found[setting.Name] != setting.Value {
			return "", open
		}
	}
	return edited, nil
}

func edit(content, comment string, settings []Assignment) string {
	wanted := map[string]Assignment{}
	for _, setting := range settings {
		wanted[setting.Name] = setting
	}
	var out strings.Builder
	written := map[string]bool{}
	p := envParser{rest: content}
	for p.rest != "" {
		before := p.rest
		name, _, ok := p.assignment()
		piece := before[:len(before)-len(p.rest)]
		setting, ours := wanted[name]
		if !ok || !ours {
			out.WriteString(piece)
			continue
		}
		out.WriteString(piece[:len(piece)-len(strings.TrimLeft(piece, blank+"\n"))])
		if setting.Value != "" && !written[name] {
			out.WriteString(setting.line())
		}
		written[name] = true
	}
	added := ""
	for _, setting := range settings {
		if setting.Value != "" && !written[setting.Name] {
			added += setting.line()
		}
	}
	if added == "" {
		return out.String()
	}
	text := out.String()
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if text != "" {
		text += "\n"
	}
	return text + "# " + comment + "\n" + added
}

// line is the setting as a line, quoted if it has to be.
func (a Assignment) line() string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(":/._~%+=@-", r)
	}
	value := a.Value
	switch {
	case strings.IndexFunc(value, func(r rune) bool { return !plain(r) }) < 0:
	case !strings.Contains(value, "'"):
		value = "'" + value + "'"
	default:
		value = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", "$", `\$`).Replace(value) + `"`
	}
	return a.Name + "=" + value + "\n"
}
