package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/internal/pass"
)

// The completions of three shells are generated from the command line, and
// packed with the agent: nothing of them is in the program.

var update = flag.Bool("update", false, "write the completions of packaging/agent/completion")

const (
	completions = "../../../packaging/agent/completion"
	manPage     = "../../../packaging/agent/opensource-agent.8"
)

// word is a command, a flag or an argument as a shell has to know it.
type word struct {
	Name, Help string
	Takes      string // what value a flag takes, such as "FILE"; empty for none
	Values     []string
	Flags      []word
	Arguments  []word
}

// model is what the shells are told: the flags of every command, and the
// commands, the default one first.
func model(t *testing.T) word {
	t.Helper()
	parser, err := kong.New(&commandLine{})
	if err != nil {
		t.Fatal(err)
	}
	return wordOf(parser.Model.Node)
}

func wordOf(node *kong.Node) word {
	found := word{Name: node.Name, Help: firstSentence(node.Help)}
	for _, flag := range node.Flags {
		one := valueOf(flag.Value)
		if !flag.IsBool() {
			one.Takes = flag.PlaceHolder
		}
		one.Name = "--" + flag.Name
		found.Flags = append(found.Flags, one)
	}
	for _, argument := range node.Positional {
		found.Arguments = append(found.Arguments, valueOf(argument))
	}
	for _, child := range node.Children {
		found.Arguments = append(found.Arguments, wordOf(child))
	}
	return found
}

func valueOf(value *kong.Value) word {
	one := word{Name: value.Name, Help: firstSentence(value.Help)}
	if values := value.Tag.Get("complete"); values != "" {
		one.Values = strings.Split(values, ",")
	}
	return one
}

func firstSentence(help string) string {
	first, _, _ := strings.Cut(help, ". ")
	return strings.TrimSuffix(first, ".")
}

var shells = template.Must(template.New("completions").Funcs(template.FuncMap{
	"join":   strings.Join,
	"quoted": func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" },
	"fish":   func(s string) string { return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'" },
	"zsh": func(s string) string {
		return strings.NewReplacer("'", `'\''`, "[", `\[`, "]", `\]`, ":", `\:`).Replace(s)
	},
	"names": func(words []word) string {
		var names []string
		for _, w := range words {
			names = append(names, w.Name)
		}
		return strings.Join(names, " ")
	},
	"taking": func(all word) string {
		var names []string
		for _, w := range slices.Concat([]word{all}, all.Arguments) {
			for _, flag := range w.Flags {
				if flag.Takes != "" && !slices.Contains(names, flag.Name) {
					names = append(names, flag.Name)
				}
			}
		}
		return strings.Join(names, " | ")
	},
	// valued are patterns of "COMMAND FLAG", of flags that take such a value: of
	// the same name they can differ from command to command.
	"valued": func(all word, what string) string {
		var patterns []string
		for i, w := range slices.Concat([]word{all}, all.Arguments) {
			for _, flag := range w.Flags {
				takes := flag.Takes
				if takes != "" && takes != "FILE" && takes != "DIR" {
					takes = "other"
				}
				switch {
				case takes != what || flag.Values != nil:
				case i == 0:
					patterns = append(patterns, `*" `+flag.Name+`"`)
				default:
					patterns = append(patterns, `"`+w.Name+" "+flag.Name+`"`)
				}
			}
		}
		return strings.Join(patterns, " | ")
	},
}).ParseGlob("testdata/*.tmpl"))

func TestCompletionsAreThoseOfTheCommandLine(t *testing.T) {
	for _, name := range []string{"opensource-agent", "_opensource-agent", "opensource-agent.fish"} {
		var want bytes.Buffer
		if err := shells.ExecuteTemplate(&want, name+".tmpl", model(t)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(completions, name)
		if *update {
			if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want.String(), readFile(t, path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s\nrun make golden", path, diff)
		}
	}
}

// completes asks a shell what could follow a line.
var completes = map[string]func(t *testing.T, line string) []string{
	"bash": func(t *testing.T, line string) []string {
		// The last word may be empty.
		return ask(t, "bash", "--norc", "-c", `source "$1"; read -ra COMP_WORDS <<<"${2//=/ = }"; [[ $2 == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _opensource_agent; printf '%s\n' "${COMPREPLY[@]}"`,
			"bash", filepath.Join(completions, "opensource-agent"), line)
	},
	"zsh": func(t *testing.T, line string) []string {
		return ask(t, "zsh", "-f", "-c", zshHarness, "zsh", completions, line)
	},
	"fish": func(t *testing.T, line string) []string {
		return ask(t, "fish", "--no-config", "-c", `source $argv[1]; complete -C $argv[2]`, filepath.Join(completions, "opensource-agent.fish"), line)
	},
}

// zshHarness completes a line in a terminal of its own, and has all that could
// be inserted written out in the place of being shown.
const zshHarness = `
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1= PS2= TERM=dumb; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; bindkey '^I' complete-word
compadd() { builtin compadd -O found \"\$@\" 2>/dev/null; print -rl -- \"<\"\${^found}\">\"; builtin compadd \"\$@\" }
print -r -- RE''ADY"
zpty -r shell out '*READY*2004h' # it reads keys then
zpty -w -n shell "$2"$'\t'
zpty -w -n shell $'\C-u'"print -r -- DO''NE"$'\n'
zpty -r shell out '*DONE*'
print -r -- "$out" | sed -n 's/\r//g; s/^.*<\(.*\)>$/\1/p'
`

func ask(t *testing.T, shell string, args ...string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, shell, args...)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LC_ALL=C.UTF-8"}
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", shell, err, out)
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), "\t") // fish adds the help
		if name != "" {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func TestShellsComplete(t *testing.T) {
	for shell, complete := range completes {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skipf("NOT TESTED: %s is not installed", shell)
			}
			for line, want := range map[string][]string{
				"opensource-agent st":                         {"status"},
				"opensource-agent re":                         {"release", "render"},
				"opensource-agent --log-level d":              {"debug"},
				"opensource-agent --site-id 1 st":             {"status"},
				"opensource-agent status --j":                 {"--json"},
				"opensource-agent status --fo":                nil,
				"opensource-agent hold n":                     {"nginx"},
				"opensource-agent hold --reason run --fo":     {"--for"},
				"opensource-agent hold --reason run n":        {"nginx"},
				"opensource-agent hold nginx n":               nil,
				"opensource-agent hold nginx --for=1h n":      nil,
				"opensource-agent hold nginx --fo":            {"--for"},
				"opensource-agent render --snapshot x --forc": {"--force"},
			} {
				if diff := cmp.Diff(want, complete(t, line)); diff != "" {
					t.Errorf("%q (-want +got):\n%s", line, diff)
				}
			}
		})
	}
}

// An option of one name can take a folder with one command, and a file with another.
func TestBashCompletesFilesAndFolders(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("NOT TESTED: bash is not installed")
	}
	dir := t.TempDir()
	file, folder := filepath.Join(dir, "a-file"), filepath.Join(dir, "a-folder")
	if err := errors.Join(os.WriteFile(file, nil, 0o644), os.Mkdir(folder, 0o755)); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string][]string{
		"opensource-agent render --out ":      {folder},
		"opensource-agent render --out=":      {folder},
		"opensource-agent render --snapshot ": {file, folder},
		"opensource-agent bundle --out ":      {file, folder},
		"opensource-agent --root ":            {folder},
		"opensource-agent status --root ":     {folder},
	} {
		if diff := cmp.Diff(want, completes["bash"](t, line+dir+"/a")); diff != "" {
			t.Errorf("%q (-want +got):\n%s", line, diff)
		}
	}
}

// The man page is written by hand.
func TestManPageNamesEveryCommandAndFlag(t *testing.T) {
	page := strings.NewReplacer(`\-`, "-", `\fB`, "", `\fR`, "").Replace(readFile(t, manPage))
	all := model(t)
	for _, flag := range all.Flags {
		if !strings.Contains(page, flag.Name) {
			t.Errorf("the man page does not tell of %s", flag.Name)
		}
	}
	for _, command := range all.Arguments {
		_, section, found := strings.Cut(page, "\n.SS "+command.Name+"\n")
		if !found {
			t.Errorf("the man page has no section %s", command.Name)
			continue
		}
		section, _, _ = strings.Cut(section, "\n.S")
		for _, flag := range command.Flags {
			if !strings.Contains(section, flag.Name) {
				t.Errorf("the man page does not tell of %s %s", command.Name, flag.Name)
			}
		}
	}
}

func TestManPageNamesEveryExitStatus(t *testing.T) {
	_, section, _ := strings.Cut(readFile(t, manPage), "\n.SH EXIT STATUS\n")
	section, _, _ = strings.Cut(section, "\n.SH ")
	for code := range pass.Code(256) {
		told := strings.Contains(section, fmt.Sprintf("\n.B %d\n", code))
		if known := code.String() != pass.Code(255).String(); told != known {
			t.Errorf("exit status %d (%s): the man page tells of it: %t", code, code, told)
		}
	}
}
