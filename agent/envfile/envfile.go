// Package envfile reads the environment files of a unit as systemd does, for
// programs that are also run by hand, when nobody else reads them.
package envfile

import (
	"os"
	"strconv"
	"strings"
)

// ReadBySystemd reports whether systemd started this very process, and has read
// the unit's files already. env is the process's environment (systemd.exec(5),
// SYSTEMD_EXEC_PID).
func ReadBySystemd(env map[string]string) bool {
	return env["SYSTEMD_EXEC_PID"] == strconv.Itoa(os.Getpid())
}

// Parse reads a file's content as EnvironmentFile= does (systemd.exec(5)):
// NAME=VALUE lines; lines that begin with # or ; are
// comments; a value may be quoted with ' (nothing is special inside) or with "
// (a backslash escapes ", \, ` and $); outside quotes a backslash escapes
// anything; an escaped line end continues the value; nothing is expanded.
// Names are not checked: whoever looks one up knows it.
func Parse(content string) map[string]string {
	env := map[string]string{}
	p := envParser{rest: content}
	for p.rest != "" {
		if name, value, ok := p.assignment(); ok {
			env[name] = value
		}
	}
	return env
}

type envParser struct{ rest string }

const blank = " \t\r"

// assignment consumes one logical line. ok is false for a comment, an empty
// line or one without an equals sign.
func (p *envParser) assignment() (name, value string, ok bool) {
	p.rest = strings.TrimLeft(p.rest, blank+"\n")
	if p.rest == "" {
		return "", "", false
	}
	line, _, _ := strings.Cut(p.rest, "\n")
	name, _, ok = strings.Cut(line, "=")
	if p.rest[0] == '#' || p.rest[0] == ';' || !ok {
		p.skip(len(line) + 1)
		return "", "", false
	}
	p.skip(len(name) + 1)
	return strings.TrimRight(name, blank), p.value(), true
}

func (p *envParser) skip(n int) { p.rest = p.rest[min(n, len(p.rest)):] }

// next consumes one byte; at the end of the file it returns a line feed.
func (p *envParser) next() byte {
	if p.rest == "" {
		return '\n'
	}
	c := p.rest[0]
	p.rest = p.rest[1:]
	return c
}

// value consumes the rest of the assignment. Quotes are special only where a
// value or a further part of it begins, as in systemd.
func (p *envParser) value() string {
	var out strings.Builder
	atStart := true
	keep := 0 // length of the value without trailing blanks
	for {
		c := p.next()
		switch {
		case c == '\n':
			return out.String()[:keep]
		case atStart && strings.IndexByte(blank, c) >= 0:
		case atStart && c == '\'':
			p.singleQuoted(&out)
			keep = out.Len()
		case atStart && c == '"':
			p.doubleQuoted(&out)
			keep = out.Len()
		case c == '\\':
			atStart = false
			if p.rest == "" {
				return out.String()[:keep]
			}
			if c = p.next(); c != '\n' {
				out.WriteByte(c)
			}
			keep = out.Len()
		default:
			atStart = false
			out.WriteByte(c)
			if strings.IndexByte(blank, c) < 0 {
				keep = out.Len()
			}
		}
	}
}

func (p *envParser) singleQuoted(out *strings.Builder) {
	for p.rest != "" {
		c := p.next()
		if c == '\'' {
			return
		}
		out.WriteByte(c)
	}
}

func (p *envParser) doubleQuoted(out *strings.Builder) {
	for p.rest != "" {
		switch c := p.next(); c {
		case '"':
			return
		case '\\':
			if p.rest == "" {
				return
			}
			c = p.next()
			if strings.IndexByte("\"\\`$", c) < 0 && c != '\n' {
				out.WriteByte('\\')
			}
			if c != '\n' {
				out.WriteByte(c)
			}
		default:
			out.WriteByte(c)
		}
	}
}
