package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

const (
	manPage   = "../../../packaging/manager/opensource-manager.1"
	reference = "../../../docs/usage/configuration.md"
)

// completes asks a shell what could follow a line, by the script in a folder.
var completes = map[string]func(t *testing.T, folder, line string) []string{
	"bash": func(t *testing.T, folder, line string) []string {
		// The last word may be empty.
		return inShell(t, "bash", "--norc", "-c", `source "$1"; read -ra COMP_WORDS <<<"${2//=/ = }"; [[ $2 == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _opensource_manager; printf '%s\n' "${COMPREPLY[@]}"`,
			"bash", filepath.Join(folder, "_opensource-manager"), line)
	},
	"zsh": func(t *testing.T, folder, line string) []string {
		return inShell(t, "zsh", "-f", "-c", zshHarness, "zsh", folder, line)
	},
	"fish": func(t *testing.T, folder, line string) []string {
		return inShell(t, "fish", "--no-config", "-c", `source $argv[1]; complete -C $argv[2]`, filepath.Join(folder, "_opensource-manager"), line)
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

func inShell(t *testing.T, shell string, args ...string) []string {
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
			folder := t.TempDir()
			script := newShell(t).must("", "completion", shell)
			if err := os.WriteFile(filepath.Join(folder, "_opensource-manager"), []byte(script), 0o644); err != nil {
				t.Fatal(err)
			}
			for line, want := range map[string][]string{
				"opensource-manager sit":                             {"sites"},
				"opensource-manager --log-level d":                   {"debug"},
				"opensource-manager --database x sit":                {"sites"},
				"opensource-manager agents --st":                     {"--state", "--state-directory"},
				"opensource-manager agents --state o":                {"offline", "online"},
				"opensource-manager agents --site 1 --state l":       {"late"},
				"opensource-manager apikey cr":                       {"create"},
				"opensource-manager apikey create --role v":          {"viewer"},
				"opensource-manager apikey create --name list --rol": {"--role"},
				"opensource-manager apikey list --rol":               nil,
				"opensource-manager completion f":                    {"fish"},
			} {
				if diff := cmp.Diff(want, complete(t, folder, line)); diff != "" {
					t.Errorf("%q (-want +got):\n%s", line, diff)
				}
			}
		})
	}
}

// The man page is written by hand: a section ".SS apikey create" for each
// command, which tells of each of its options, and the settings at their place.
func TestManPageNamesEveryCommandAndFlag(t *testing.T) {
	content, err := os.ReadFile(manPage)
	if err != nil {
		t.Fatal(err)
	}
	page := strings.NewReplacer(`\-`, "-", `\fB`, "", `\fR`, "").Replace(string(content))
	parser, err := kong.New(&commands{}, commandLine()...)
	if err != nil {
		t.Fatal(err)
	}
	all := places(parser.Model.Node, "", nil)
	for _, flag := range all[0].Flags {
		setting := strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(flag.Name, "--"), "-", "_"))
		if flag.Name != "--help" && !strings.Contains(page, "\n.B "+setting+"\n") {
			t.Errorf("the man page does not tell of %s", setting)
		}
	}
	for _, place := range all[1:] {
		if len(place.Commands) > 0 {
			continue
		}
		_, section, found := strings.Cut(page, "\n.SS"+place.Path+"\n")
		if !found {
			t.Errorf("the man page has no section%s", place.Path)
			continue
		}
		section, _, _ = strings.Cut(section, "\n.S")
		for _, flag := range place.Flags[len(all[0].Flags):] {
			if flag.Name != "--json" && !strings.Contains(section, flag.Name) {
				t.Errorf("the man page does not tell of%s %s", place.Path, flag.Name)
			}
		}
	}
}

// The table of commands has every command with its options, and says which have
// no --json.
func TestReferenceNamesEveryCommandAndFlag(t *testing.T) {
	content, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	_, manager, _ := strings.Cut(string(content), "\n## Manager\n")
	_, table, _ := strings.Cut(manager, "\n### Commands\n")
	table, _, _ = strings.Cut(table, "\n### ")
	table, exceptions, _ := strings.Cut(table, "\nAll but ")
	exceptions, _, found := strings.Cut(exceptions, " have `--json`")
	if !found {
		t.Fatalf("%s does not say which commands have --json", reference)
	}
	parser, err := kong.New(&commands{}, commandLine()...)
	if err != nil {
		t.Fatal(err)
	}
	all := places(parser.Model.Node, "", nil)
	for _, place := range all[1:] {
		if len(place.Commands) > 0 {
			continue
		}
		name := strings.TrimSpace(place.Path)
		usages := usagesOf(table, name)
		if usages == "" {
			t.Errorf("%s does not tell of %s", reference, name)
			continue
		}
		hasJSON := false
		for _, flag := range place.Flags[len(all[0].Flags):] {
			if flag.Name == "--json" {
				hasJSON = true
			} else if !strings.Contains(usages, flag.Name) && !slices.Contains(shortened, flag.Name) {
				t.Errorf("%s does not tell of %s %s", reference, name, flag.Name)
			}
		}
		if excepted := strings.Contains(exceptions, "`"+name+"`"); excepted == hasJSON {
			t.Errorf("%s: %s has --json: %t, and is an exception: %t", reference, name, hasJSON, excepted)
		}
	}
}

// Options that are known by their short form: -f of apply.
var shortened = []string{"--file"}

// usagesOf is what stands between backquotes and begins with a command.
func usagesOf(table, command string) string {
	var usages []string
	for i, text := range strings.Split(table, "`") {
		if i%2 == 1 && (text == command || strings.HasPrefix(text, command+" ")) {
			usages = append(usages, text)
		}
	}
	return strings.Join(usages, "\n")
}

func TestHelpOfEveryCommand(t *testing.T) {
	parser, err := kong.New(&commands{}, commandLine()...)
	if err != nil {
		t.Fatal(err)
	}
	s := newShell(t)
	for _, place := range places(parser.Model.Node, "", nil) {
		if got := s.must("", append(strings.Fields(place.Path), "--help")...); !strings.Contains(got, "Usage: opensource-manager"+place.Path) {
			t.Errorf("%s --help: %s", place.Path, got)
		}
		for _, flag := range place.Flags {
			if flag.Help == "" {
				t.Errorf("%s %s has no help", place.Path, flag.Name)
			}
		}
	}
}

func TestUnknownCommandsAreAnsweredWithTheLikely(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := execute(t.Context(), []string{"agnets"}, nil, nil, nil, &stdout, &stderr); code != exitUsage || !strings.Contains(stderr.String(), `did you mean "agents"?`) {
		t.Errorf("%d %s", code, stderr.String())
	}
}
