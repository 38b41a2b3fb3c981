package main

import (
	"embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"

	"github.com/alecthomas/kong"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" complete:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (completionCommand) regardlessOfSettings() {}

// Run prints a script that makes a shell complete command lines. It is
// generated from the command line itself; the package installs all three.
func (c completionCommand) Run(e *environmentOf) error { return writeCompletion(e.stdout, c.Shell) }

// place is what may follow a sequence of commands, such as " apikey create";
// the empty one is the program alone.
type place struct {
	Path     string
	Commands []word
	Flags    []word // those of the commands before it, too
	Takes    string // what its argument is, such as "FILE"
	Values   []string
}

// word is a command or a flag as a shell has to know it.
type word struct {
	Name, Help string
	Takes      string // what value a flag takes, such as "FILE"; empty for none
	Values     []string
}

// places returns every place of the command line, the program first.
func places(node *kong.Node, path string, flags []word) []place {
	here := place{Path: path, Flags: slices.Clone(flags)}
	for _, flag := range node.Flags {
		one := wordOf("--"+flag.Name, flag.Value)
		if !flag.IsBool() {
			one.Takes = strings.ToUpper(flag.PlaceHolder)
			if one.Takes == "" {
				one.Takes = "VALUE"
			}
		}
		here.Flags = append(here.Flags, one)
	}
	for _, argument := range node.Positional {
		one := wordOf(argument.Name, argument)
		here.Takes, here.Values = strings.ToUpper(argument.Tag.Get("placeholder")), one.Values
	}
	all := []place{}
	for _, child := range node.Children {
		if child.Hidden {
			continue
		}
		here.Commands = append(here.Commands, word{Name: child.Name, Help: firstSentence(child.Help)})
		all = append(all, places(child, path+" "+child.Name, here.Flags)...)
	}
	return append([]place{here}, all...)
}

func wordOf(name string, value *kong.Value) word {
	one := word{Name: name, Help: firstSentence(value.Help)}
	if values := value.Tag.Get("complete"); values != "" {
		one.Values = strings.Split(values, ",")
	} else if value.Enum != "" {
		one.Values = slices.DeleteFunc(strings.Split(value.Enum, ","), func(v string) bool { return v == "" })
	}
	return one
}

func firstSentence(help string) string {
	first, _, _ := strings.Cut(help, ". ")
	return strings.TrimSuffix(first, ".")
}

//go:embed completion/*.tmpl
var completionFiles embed.FS

var completions = template.Must(template.New("").Funcs(template.FuncMap{
	"join": strings.Join,
	"fish": func(s string) string { return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'" },
	"zsh": func(w word) string {
		return "'" + w.Name + ":" + strings.NewReplacer("'", `'\''`, ":", `\:`).Replace(w.Help) + "'"
	},
	"names": func(words []word) string {
		names := make([]string, 0, len(words))
		for _, w := range words {
			names = append(names, w.Name)
		}
		return strings.Join(names, " ")
	},
	// taking are all flags that take a value, of whatever command.
	"taking": func(all []place) []string {
		var names []string
		for _, place := range all {
			for _, flag := range place.Flags {
				if flag.Takes != "" && !slices.Contains(names, flag.Name) {
					names = append(names, flag.Name)
				}
			}
		}
		return names
	},
}).ParseFS(completionFiles, "completion/*.tmpl"))

func writeCompletion(out io.Writer, shell string) error {
	parser, err := kong.New(&commands{}, commandLine()...)
	if err != nil {
		return fmt.Errorf("set up the command line: %w", err)
	}
	return completions.ExecuteTemplate(out, shell+".tmpl", places(parser.Model.Node, "", nil))
}
