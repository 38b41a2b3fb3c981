package manager_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/servertest"
)

// The page that shows people the API.
const walkThrough = "../docs/usage/api.md"

func readWalkThrough(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(walkThrough)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// The commands of the page are run as they stand, one after the other, against
// a fresh manager.
func TestWalkThrough(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("SKIPPED: curl is not installed")
	}
	s := servertest.Start(t, servertest.Options{})
	script := "set -eu\nsudo() { echo \"$ADMIN_KEY\"; }\n" + commands(readWalkThrough(t))
	script = strings.Replace(script, "M=http://127.0.0.1:3000\n", "M=$MANAGER\n", 1)

	shell := exec.CommandContext(t.Context(), "sh")
	shell.Dir = t.TempDir() // what commands write stays there
	shell.Stdin = strings.NewReader(script)
	shell.Env = append(os.Environ(), "HOME="+t.TempDir(), "MANAGER="+s.URL, "ADMIN_KEY="+s.AdminKey)
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if strings.Contains(string(out), `"error"`) {
		t.Errorf("a command of %s is refused:\n%s", walkThrough, out)
	}
	for _, want := range []string{
		`"externalHostname":"app"`, `"externalPort":2000`, `"dnsName":"_sip._tcp"`,
		`"hostPath":"/mnt/volumes/site-1/alice/web/data"`, "HTTP/1.1 200 OK", `"macAddress":null`,
		`"removalsConfirmed":true`, `"dnsForwarders":"9.9.9.9",`, "\n412\n", "\n304\n",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no answer holds %s:\n%s", want, out)
		}
	}
}

// commands returns the indented blocks of a page, without what needs a site
// that is served and without what is no command.
func commands(page string) string {
	var script strings.Builder
	fenced := false // what is answered
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		command, indented := strings.CutPrefix(line, "    ")
		if indented && !fenced && !strings.HasPrefix(command, "{") && !strings.HasPrefix(command, "curl https://") {
			script.WriteString(command)
		}
	}
	return script.String()
}

// Every flag of the command line, and the variable that its help names.
func TestReferenceNamesEverySetting(t *testing.T) {
	page, err := os.ReadFile("../docs/usage/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, reference, _ := strings.Cut(string(page), "## Manager")
	flags := reflect.TypeFor[config.Flags]()
	for i := range flags.NumField() {
		help := flags.Field(i).Tag.Get("help")
		named := variable.FindStringSubmatch(help)
		if named == nil {
			t.Errorf("the help of %s names no variable: %s", flags.Field(i).Name, help)
			continue
		}
		name, flag := named[1], "--"+strings.ReplaceAll(strings.ToLower(named[1]), "_", "-")
		if !strings.Contains(reference, "| `"+name+"` | `"+flag+"` |") {
			t.Errorf("docs/usage/configuration.md has no row of the manager's setting %s, %s", name, flag)
		}
	}
}

// The name of a variable in the help of its flag: "… (LOG_LEVEL, default info)".
var variable = regexp.MustCompile(`\(([A-Z_]+)[,)]`)

// A row of the table of paths: paths, the verbs of each, filters and notes.
var (
	pathRow = regexp.MustCompile("(?m)^\\| (`/[^|]+) \\| ([A-Z][A-Z, ]+) \\|([^|]*)\\|$")
	inCode  = regexp.MustCompile("`([^`]+)`")
)

// The table of errors has every code that the API describes, with its status.
func TestWalkThroughListsEveryError(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	page, codes := readWalkThrough(t), 0
	for _, operation := range s.Describe(t).Operations {
		for status, response := range operation.Responses {
			for code := range response.Content["application/json"].Examples {
				if status < "400" {
					continue
				}
				if codes++; !strings.Contains(page, "| "+status+" | `"+code+"` | ") {
					t.Errorf("%s has no row of %s %s", walkThrough, status, code)
				}
			}
		}
	}
	if codes < 100 {
		t.Fatalf("only %d errors are described", codes)
	}
}

func TestWalkThroughListsEveryPath(t *testing.T) {
	documented := map[string]string{}
	for _, row := range pathRow.FindAllStringSubmatch(readWalkThrough(t), -1) {
		paths, verbs := inCode.FindAllStringSubmatch(row[1], -1), strings.Split(row[2], ", ")
		if len(paths) != len(verbs) {
			t.Fatalf("%d paths and %d lists of verbs in %s", len(paths), len(verbs), row[0])
		}
		for i, path := range paths {
			documented[path[1]] = verbs[i]
			if i == 0 {
				for _, filter := range inCode.FindAllStringSubmatch(row[3], -1) {
					documented[path[1]] += " ?" + filter[1]
				}
			}
		}
	}
	delete(documented, "/openapi.json") // the description does not describe itself
	if diff := cmp.Diff(described(t), documented); diff != "" {
		t.Errorf("the table of paths in %s is not what the API has (-API +page):\n%s", walkThrough, diff)
	}
}

// described returns the verbs and filters of every path, as the API itself
// describes them.
func described(t *testing.T) map[string]string {
	t.Helper()
	s := servertest.Start(t, servertest.Options{})
	var api struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name, In string }
		}
	}
	answer := s.Call(t, http.MethodGet, "/openapi.json", nil)
	if err := json.Unmarshal(answer.Body, &api); err != nil {
		t.Fatal(err)
	}
	everywhere := []string{"limit", "offset", "sort", "q", "cascade"}
	list := map[string]string{}
	for path, operations := range api.Paths {
		var words []string
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			if _, has := operations[method]; has {
				words = append(words, strings.ToUpper(method))
			}
		}
		for _, parameter := range operations["get"].Parameters {
			if parameter.In == "query" && !slices.Contains(everywhere, parameter.Name) {
				words = append(words, "?"+parameter.Name)
			}
		}
		list[path] = strings.Join(words, " ")
	}
	if len(list) == 0 {
		t.Fatalf("the API describes no path: %s", answer.Body)
	}
	return list
}
