package manager_test

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/servertest"
)

// The page that people search for what they have on the screen.
const troubleshooting = "../docs/usage/troubleshooting.md"

// says is the part of it about the manager.
func says(t *testing.T) string {
	t.Helper()
	_, part, found := strings.Cut(page(t, troubleshooting), "\n## The manager says\n")
	if !found {
		t.Fatalf("%s has no section about what the manager says", troubleshooting)
	}
	return part
}

// Every code and every message of an error that the API has in its source.
func TestTroubleshootingKnowsErrorsOfTheAPI(t *testing.T) {
	known, codes := says(t), 0
	for path, file := range sources(t, "internal/api") {
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.CompositeLit)
			if name, named := literalType(literal); !ok || !named || name != "Error" {
				return true
			}
			for _, element := range literal.Elts {
				field, ok := element.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				switch text := firstText(field.Value); field.Key.(*ast.Ident).Name {
				case "Code":
					if !errorCode.MatchString(text) {
						continue // made of something else: the description has it
					}
					if codes++; !strings.Contains(known, "`"+text+"`") {
						t.Errorf("%s: %s tells nothing of the code %s", path, troubleshooting, text)
					}
				case "Message":
					if part := longestPart(text); !strings.Contains(known, part) {
						t.Errorf("%s: %s tells nothing of the message %q", path, troubleshooting, part)
					}
				}
			}
			return true
		})
	}
	if codes < 20 {
		t.Fatalf("only %d codes were found", codes)
	}
	for _, operation := range servertest.Start(t, servertest.Options{}).Describe(t).Operations {
		for status, response := range operation.Responses {
			for code := range response.Content["application/json"].Examples {
				if status >= "400" && !strings.Contains(known, "`"+code+"`") {
					t.Errorf("%s tells nothing of the code %s", troubleshooting, code)
				}
			}
		}
	}
}

var errorCode = regexp.MustCompile(`^[a-z_]+$`)

// Everything for which the manager may refuse to start.
func TestTroubleshootingKnowsRefusalsToStart(t *testing.T) {
	known, refusals := says(t), 0
	for _, dir := range []string{"internal/config", "internal/server", "internal/store"} {
		for path, file := range sources(t, dir) {
			if dir == "internal/store" && !slices.Contains(opening, filepath.Base(path)) {
				continue
			}
			for _, text := range errorsOf(file) {
				if refusals++; !strings.Contains(known, longestPart(text)) {
					t.Errorf("%s: %s tells nothing of %q", path, troubleshooting, text)
				}
			}
		}
	}
	for _, refused := range []store.SchemaError{{Database: "…", Have: 9, Want: 8}, {Database: "…", Have: 8, Want: 9}} {
		if !strings.Contains(known, refused.Error()) {
			t.Errorf("%s tells nothing of %q", troubleshooting, refused.Error())
		}
	}
	if refusals < 40 {
		t.Fatalf("only %d refusals were found", refusals)
	}
}

// The files of the store that open and migrate databases.
var opening = []string{"database.go", "files.go", "migrate.go", "postgres.go", "sqlite.go"}

// The table of tunables has every setting, with its default, and no other.
func TestTunablesAreThoseOfTheProgram(t *testing.T) {
	_, part, _ := strings.Cut(page(t, "../docs/usage/configuration.md"), "\n### When to change what\n")
	part, _, _ = strings.Cut(part, "\n### ")
	rows := map[string]string{}
	for _, row := range tunable.FindAllStringSubmatch(part, -1) {
		rows[row[1]] = row[2]
	}
	defaults := reflect.ValueOf(config.Defaults)
	for i := range defaults.NumField() {
		name := variable.FindStringSubmatch(defaults.Type().Field(i).Tag.Get("help"))[1]
		want := cmp.Or(fallbacks[name], "`"+defaults.Field(i).String()+"`")
		if want == "``" {
			want = "none"
		}
		if rows[name] != want {
			t.Errorf("the row of %s has the default %s, want %s", name, rows[name], want)
		}
	}
	known := settings(t)
	for name := range known {
		if rows[name] == "" {
			t.Errorf("there is no row of %s", name)
		}
	}
	for name := range rows {
		if !known[name] {
			t.Errorf("%s is no setting of the manager", name)
		}
	}
}

// settings are the names of all settings, those without a flag as well.
func settings(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, file := range sources(t, "internal/config") {
		ast.Inspect(file, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && settingName.MatchString(literal.Value) {
				names[strings.Trim(literal.Value, `"`)] = true
			}
			return true
		})
	}
	delete(names, "CREDENTIALS_DIRECTORY") // systemd's
	return names
}

var settingName = regexp.MustCompile(`^"[A-Z]+(_[A-Z]+)*"$`)

// A row of the table: name, default, unit or form, when to change it.
var tunable = regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\| ([^|]+) \\| [^|]+ \\| [^|]+ \\|$")

// Defaults that depend on other settings.
var fallbacks = map[string]string{"DATABASE": "`manager.db` in the state directory"}

// sources parses the files of a folder, without tests and generated pages.
func sources(t *testing.T, dir string) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "_templ.go") {
			return err
		}
		if strings.Count(path, "/") > strings.Count(dir, "/")+1 {
			return nil // a package of its own
		}
		files[path], err = parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func literalType(literal *ast.CompositeLit) (string, bool) {
	if literal == nil {
		return "", false
	}
	name, ok := literal.Type.(*ast.Ident)
	if !ok {
		return "", false
	}
	return name.Name, true
}

// errorsOf lists the texts of the errors that a file makes: by fmt.Errorf,
// errors.New, fmt.Sprintf in a method Error, and a function refuse(name, format).
func errorsOf(file *ast.File) (texts []string) {
	for _, declared := range file.Decls {
		method, ok := declared.(*ast.FuncDecl)
		describes := ok && method.Name.Name == "Error"
		ast.Inspect(declared, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			text := ""
			switch name := calledName(call); {
			case name == "fmt.Errorf", name == "errors.New", name == "fmt.Sprintf" && describes:
				text = firstText(call.Args[0])
			case name == "refuse":
				text = firstText(call.Args[1])
			}
			if longestPart(text) != "" {
				texts = append(texts, text)
			}
			return true
		})
	}
	return texts
}

// calledName is "function" or "package.function".
func calledName(call *ast.CallExpr) string {
	switch called := call.Fun.(type) {
	case *ast.Ident:
		return called.Name
	case *ast.SelectorExpr:
		if of, ok := called.X.(*ast.Ident); ok {
			return of.Name + "." + called.Sel.Name
		}
	}
	return ""
}

// firstText is the first text in an expression, "" if it has none.
func firstText(e ast.Expr) (text string) {
	ast.Inspect(e, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING && text == "" {
			text, _ = strconv.Unquote(literal.Value)
		}
		return text == ""
	})
	return text
}

// longestPart is what is the same whatever is put into a format.
func longestPart(format string) string {
	parts := verb.Split(strings.ReplaceAll(format, "%%", "%\x00"), -1)
	longest := slices.MaxFunc(parts, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	return strings.Trim(strings.ReplaceAll(longest, "%\x00", "%"), " :;,()")
}

var verb = regexp.MustCompile(`%[-+#0-9.]*[a-zA-Z]`)
