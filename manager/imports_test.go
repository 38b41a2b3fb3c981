// Package manager_test holds the manager to its layers (who may import whom) and
// to what its documentation says.
package manager_test

import (
	"errors"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "opensource.internal/manager"

// restricted names what only some folders may import. Everything below a
// folder counts as the folder.
var restricted = []struct {
	what   string
	why    string
	except []string // what may be imported after all
	by     []string // folders, relative to the module
}{
	{
		what: "opensource.internal/agent", why: "the manager shares the contract, the renderer and the reader of environment files with the agent, nothing else",
		except: []string{"opensource.internal/agent/checkin", "opensource.internal/agent/envfile", "opensource.internal/agent/render"},
	},
	{
		what: "gorm.io", why: "only the store knows the database",
		by: []string{"internal/store"},
	},
	{
		what: "github.com/mattn/go-sqlite3", why: "only the store knows the database",
		by: []string{"internal/store"},
	},
	{
		what: "github.com/jackc/pgx/v5", why: "only the store knows the database",
		by: []string{"internal/store"},
	},
	{
		what: "github.com/pressly/goose/v3", why: "only the store knows the database",
		by: []string{"internal/store"},
	},
	{
		what: "github.com/gin-gonic/gin", why: "only what answers requests knows the router",
		by: []string{"internal/server", "internal/api", "internal/dashboard", "internal/measure"},
	},
	{
		what: "github.com/danielgtaylor/huma/v2", why: "only the API is described",
		by: []string{"internal/api"},
	},
	{
		what: module + "/internal/server", why: "the server puts everything together and is below nothing but the program",
		by: []string{"internal/server", "cmd/opensource-manager", "servertest"},
	},
	{
		what: module + "/internal/api", why: "only the server wires the API in",
		by: []string{"internal/api", "internal/server"},
	},
	{
		what: module + "/internal/dashboard", why: "only the server wires the pages in",
		by: []string{"internal/dashboard", "internal/server"},
	},
	{
		what: module + "/internal/auth", why: "credentials are the business of what answers requests and of the command line",
		by: []string{"internal/auth", "internal/server", "internal/api", "internal/dashboard", "cmd/opensource-manager", "servertest"},
	},
	{
		what: module + "/internal/snapshot", why: "only what shows, publishes or hands out snapshots needs them",
		by: []string{"internal/snapshot", "internal/manifest", "internal/server", "internal/api", "internal/dashboard", "internal/live", "internal/show", "cmd/opensource-manager"},
	},
	{
		what: module + "/internal/live", why: "only what answers requests has anybody listening",
		by: []string{"internal/live", "internal/server", "internal/api", "internal/dashboard"},
	},
	{
		what: module + "/internal/preview", why: "what is shown of snapshots is read through the package snapshot",
		by: []string{"internal/preview", "internal/snapshot", "internal/show", "internal/api", "internal/dashboard", "cmd/opensource-manager"},
	},
	{
		what: module + "/internal/show", why: "the JSON forms are what the API answers and the command line prints",
		by: []string{"internal/show", "internal/api", "cmd/opensource-manager"},
	},
	{
		what: module + "/internal/tasks", why: "the server says what is done now and then; what is done does not know by whom",
		by: []string{"internal/tasks", "internal/server"},
	},
	{
		what: "github.com/goccy/go-yaml", why: "only manifests are YAML",
		by: []string{"internal/manifest"},
	},
	{
		what: module + "/internal/manifest", why: "manifests are applied by the program and the API, and inventories set back by the pages, too",
		by: []string{"internal/manifest", "internal/api", "internal/dashboard", "cmd/opensource-manager"},
	},
	{
		what: "github.com/nicholas-fedor/shoutrrr", why: "only notifications are sent by it",
		by: []string{"internal/notify"},
	},
	{
		what: module + "/internal/notify", why: "notifications are sent by the server, and managed by the API, the pages and the program",
		by: []string{"internal/notify", "internal/server", "internal/show", "internal/api", "internal/dashboard", "cmd/opensource-manager"},
	},
	{
		what: "github.com/prometheus", why: "only the metrics know who reads them",
		by: []string{"internal/metrics"},
	},
	{
		what: module + "/internal/metrics", why: "only the server measures",
		by: []string{"internal/metrics", "internal/server"},
	},
	{
		what: module + "/internal/config", why: "settings are read by the program and handed on",
		by: []string{"internal/config", "internal/server", "cmd/opensource-manager", "servertest"},
	},
}

func TestPackagesKeepToTheirLayer(t *testing.T) {
	for _, fault := range breaches(readImports(t)) {
		t.Error(fault)
	}
}

func TestBreachesAreFound(t *testing.T) {
	for name, test := range map[string]struct {
		folder, imports string
		breach          bool
	}{
		"the contract":              {"internal/api", "opensource.internal/agent/checkin", false},
		"the renderer":              {"internal/api", "opensource.internal/agent/render", false},
		"the agent's program":       {"internal/api", "opensource.internal/agent/cmd/opensource-agent", true},
		"gorm in the store":         {"internal/store", "gorm.io/gorm", false},
		"gorm in its tests' suite":  {"internal/store/storetest", "gorm.io/gorm/clause", false},
		"gorm in the API":           {"internal/api", "gorm.io/gorm", true},
		"gorm beside the store":     {"internal/storefront", "gorm.io/gorm", true},
		"gin in the store":          {"internal/store", "github.com/gin-gonic/gin", true},
		"gin in the API":            {"internal/api", "github.com/gin-gonic/gin", false},
		"the API in the store":      {"internal/store", module + "/internal/api", true},
		"the API in the dashboard":  {"internal/dashboard", module + "/internal/api", true},
		"the store in the API":      {"internal/api", module + "/internal/store", false},
		"the server in the program": {"cmd/opensource-manager", module + "/internal/server", false},
		"the server in the API":     {"internal/api", module + "/internal/server", true},
	} {
		t.Run(name, func(t *testing.T) {
			found := breaches(map[string][]string{test.folder: {test.imports}})
			if got := len(found) > 0; got != test.breach {
				t.Errorf("breach = %v, want %v: %q", got, test.breach, found)
			}
		})
	}
}

// The inventory's rules and the comparison of revisions are pure, and the store
// is built on nothing but them.
func TestLowestLayers(t *testing.T) {
	imports := readImports(t)
	for folder, want := range map[string][]string{
		"internal/prose":     nil,
		"internal/inventory": nil,
		"internal/revision":  {"internal/prose"},
		"internal/events":    {"internal/prose"},
		"internal/store":     {"internal/events", "internal/inventory", "internal/revision"},
	} {
		var got []string
		for _, name := range imports[folder] {
			if own, found := strings.CutPrefix(name, module+"/"); found && !slices.Contains(got, own) {
				got = append(got, own)
			}
		}
		slices.Sort(got)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s imports other packages of the manager than it may (-want +got):\n%s", folder, diff)
		}
	}
}

// breaches names every import that the rules do not allow.
func breaches(imports map[string][]string) []string {
	var faults []string
	for _, folder := range slices.Sorted(maps.Keys(imports)) {
		for _, name := range imports[folder] {
			for _, rule := range restricted {
				if below(name, rule.what) && !belowAny(name, rule.except) && !belowAny(folder, rule.by) {
					faults = append(faults, folder+" may not import "+name+": "+rule.why)
				}
			}
		}
	}
	return faults
}

func belowAny(name string, parents []string) bool {
	return slices.ContainsFunc(parents, func(parent string) bool { return below(name, parent) })
}

// below reports whether name is the path of parent or lies under it.
func below(name, parent string) bool { return name == parent || strings.HasPrefix(name, parent+"/") }

// readImports returns what the programs' files of each folder of this module
// import. Tests are free to look at everything.
func readImports(t *testing.T) map[string][]string {
	t.Helper()
	imports := map[string][]string{}
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
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
	if err == nil && imports["internal/store"] == nil {
		err = errors.New("no package was found")
	}
	if err != nil {
		t.Fatal("read imports: ", err)
	}
	return imports
}
