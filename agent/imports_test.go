// Package agent_test holds the agent to its layers: who may import whom, and
// which modules of others end up on people's hosts.
package agent_test

import (
	"errors"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "opensource.internal/agent"

// layers names, for every package of the agent, what it may import besides the
// standard library: packages of this module by their folder, others by module.
// A new package needs a line here, and so does a new arrow between two.
var layers = map[string][]string{
	"checkin":                        {},
	"envfile":                        {},
	"render":                         {"checkin", "opensource.internal/templates"},
	"internal/atomicfile":            {"golang.org/x/sys"},
	"internal/systemd":               {"github.com/coreos/go-systemd/v22", "golang.org/x/sys"},
	"internal/config":                {"checkin", "envfile"},
	"internal/host":                  {"checkin", "render", "golang.org/x/sys"},
	"internal/volumes":               {"checkin", "golang.org/x/sys", "github.com/moby/sys/mountinfo"},
	"internal/apply":                 {"checkin", "render", "internal/atomicfile"},
	"internal/services":              {"checkin", "render", "internal/apply", "internal/systemd", "golang.org/x/net"},
	"internal/services/servicestest": {"internal/systemd"}, // for tests
	"internal/state":                 {"checkin", "internal/atomicfile", "internal/host", "internal/volumes", "golang.org/x/sys"},
	"internal/probe":                 {"checkin", "golang.org/x/net"},
	"internal/pass": {
		"checkin", "render", "internal/apply", "internal/host", "internal/probe", "internal/services", "internal/state",
		"internal/systemd", "internal/volumes", "github.com/aymanbagabas/go-udiff",
	},
	"internal/status": {"checkin", "internal/pass", "internal/systemd"},
	"internal/preflight": {
		"checkin", "render", "internal/host", "internal/services", "internal/systemd", "internal/volumes", "golang.org/x/sys",
	},
	"internal/bundle": {"checkin", "render", "internal/pass", "internal/services"},
	"internal/enroll": {"checkin", "envfile", "internal/atomicfile"},
	// Measuring programs run the agent from outside.
	"internal/measure/minimal": {},
	"internal/measure/passes":  {},
	"cmd/opensource-agent": {
		"checkin", "render", "internal/bundle", "internal/config", "internal/enroll", "internal/pass", "internal/preflight", "internal/status",
		"internal/systemd", "internal/volumes", "github.com/alecthomas/kong", "github.com/systemd/slog-journal",
	},
}

// linked are the modules of others in the program. The list is short on
// purpose: the agent is one static binary on other people's hosts.
var linked = []string{
	"github.com/alecthomas/kong",
	"github.com/aymanbagabas/go-udiff",
	"github.com/coreos/go-systemd/v22",
	"github.com/godbus/dbus/v5",
	"github.com/moby/sys/mountinfo",
	"github.com/systemd/slog-journal",
	"golang.org/x/net",
	"golang.org/x/sys",
}

func TestPackagesKeepToTheirLayer(t *testing.T) {
	for _, fault := range breaches(readImports(t, isProgram), layers) {
		t.Error(fault)
	}
}

// Tests may use more modules, but not the manager either.
func TestNothingImportsTheManager(t *testing.T) {
	for folder, imports := range readImports(t, func(string) bool { return true }) {
		for _, name := range imports {
			if below(name, "opensource.internal/manager") {
				t.Errorf("%s imports %s: the manager may know the agent's contract, never the other way round", folder, name)
			}
		}
	}
}

func TestLinkedModules(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./cmd/opensource-agent")
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	modules := map[string]bool{}
	for name := range strings.FieldsSeq(string(out)) {
		if !below(name, "opensource.internal") {
			modules[name] = true
		}
	}
	if diff := cmp.Diff(linked, slices.Sorted(maps.Keys(modules))); diff != "" {
		t.Errorf("the program links other modules than those listed here (-want +got):\n%s", diff)
	}
}

func TestBreachesAreFound(t *testing.T) {
	for name, test := range map[string]struct {
		imports map[string][]string
		want    []string
	}{
		"keeps the rules": {
			map[string][]string{"render": {"text/template", module + "/checkin", "opensource.internal/templates"}}, nil,
		},
		"a foreign module in the contract": {
			map[string][]string{"checkin": {"github.com/google/go-cmp/cmp"}},
			[]string{"checkin may not import github.com/google/go-cmp/cmp"},
		},
		"an arrow the wrong way": {
			map[string][]string{"internal/apply": {module + "/internal/pass"}},
			[]string{"internal/apply may not import internal/pass"},
		},
		"a package of a name that only begins alike": {
			map[string][]string{"internal/volumes": {"golang.org/x/system"}},
			[]string{"internal/volumes may not import golang.org/x/system"},
		},
		"a package without a line": {
			map[string][]string{"internal/util": {"fmt"}},
			[]string{"internal/util has no line in layers"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, breaches(test.imports, layers)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// breaches names every import that the rules do not allow.
func breaches(imports, allowed map[string][]string) []string {
	var faults []string
	for _, folder := range slices.Sorted(maps.Keys(imports)) {
		rules, known := allowed[folder]
		if !known {
			faults = append(faults, folder+" has no line in layers")
			continue
		}
		for _, name := range imports[folder] {
			name = strings.TrimPrefix(name, module+"/")
			if !isStandard(name) && !slices.ContainsFunc(rules, func(rule string) bool { return below(name, rule) }) {
				faults = append(faults, folder+" may not import "+name)
			}
		}
	}
	return faults
}

// below reports whether name is the path of parent or lies under it.
func below(name, parent string) bool { return name == parent || strings.HasPrefix(name, parent+"/") }

// isStandard knows packages of the standard library by their first element,
// which is no domain name. Our own are given without the module.
func isStandard(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return !strings.Contains(first, ".") && !slices.Contains([]string{"checkin", "envfile", "render", "internal", "cmd"}, first)
}

func isProgram(file string) bool { return !strings.HasSuffix(file, "_test.go") }

// readImports returns what the files of each folder of this module import.
func readImports(t *testing.T, wanted func(file string) bool) map[string][]string {
	t.Helper()
	imports := map[string][]string{}
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(file) != ".go" || !wanted(file) {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder := filepath.ToSlash(filepath.Dir(file))
		for _, spec := range parsed.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			imports[folder] = append(imports[folder], name)
		}
		return nil
	})
	if err == nil && imports["checkin"] == nil {
		err = errors.New("no package was found")
	}
	if err != nil {
		t.Fatal("read imports: ", err)
	}
	return imports
}
