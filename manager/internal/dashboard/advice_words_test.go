package dashboard

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

// advisedBefore are texts of the agent that need no advice of the page: they say
// themselves what to do, come only beside another, or are in no report.
var advisedBefore = []string{
	"connect: %w", "read the answer", "the answer is", "%s is %s", "the answer is to another question", "no answer", "there is no such name", // what a sentinel's lookup ends with
	"%s %s: %w", "%s %s: %w (%s)", "%w\n%s", "%w: %w", "%w: closed", "%w\nstopped before", "%w\nthe live files", // put around another one
	"it came alive and did not last", // its own words follow
	"make folder: %w", "compare live file: %w", "stage the candidate", "read the options of dnsmasq's unit: %w", "read the record of a commit", "it names no files of this service", "%q is no absolute path",
	"not loaded, since it is refused", // beside what was refused before
	"dnsmasq found faults in its files", "read the revision in force", "property %s is not of the documented type",
	"read the mounts of this host", "read the id maps of this host", "odd line", "%s: %w", "nothing to make",
	"it appeared this moment; the next pass looks at it", "make directory %q: %w", "open directory %q: %w", "look at %q: %w", "ask for the mount of %q", "look into %q: %w",
	"lies inside the directory of volume", "is the directory of volume", "%d volumes have the id", "is not a positive number", // with the field before them
}

// TestEveryErrorOfAnApplyHasAdvice reads what the agent can say of a service or a
// volume out of its code: a text that is new there fails until it has a remedy, or
// a place among those that need none.
func TestEveryErrorOfAnApplyHasAdvice(t *testing.T) {
	for folder, remedies := range map[string][]remedy{
		"apply": remediesByWords, "services": remediesByWords, "systemd": remediesByWords, "atomicfile": remediesByWords,
		"volumes": volumeRemedies,
	} {
		texts := errorsOf(t, "../../../agent/internal/"+folder)
		if len(texts) == 0 {
			t.Fatalf("no text was found in %s", folder)
		}
		for _, text := range texts {
			advised := slices.ContainsFunc(advisedBefore, func(known string) bool { return strings.Contains(text, known) })
			if !advised && len(stepsFor(text, remedies)) == 0 {
				t.Errorf("%s: %q has no advice", folder, text)
			}
		}
	}
}

// errorsOf are the texts of the errors that a package makes.
func errorsOf(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(folder + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is || len(call.Args) == 0 {
				return true
			}
			what, is := call.Fun.(*ast.SelectorExpr)
			if is && (what.Sel.Name == "Errorf" || what.Sel.Name == "New") {
				if text := literal(call.Args[0]); text != "" {
					texts = append(texts, text)
				}
			}
			return true
		})
	}
	return texts
}

// literal is a text, or several that are put together.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		return literal(e.X) + literal(e.Y)
	}
	return ""
}

// TestAdviceForWords: what real services and real files say, to the command that
// helps.
func TestAdviceForWords(t *testing.T) {
	site := store.Site{ID: 7, Site: inventory.Site{Name: "lab"}}
	for message, want := range map[string]string{
		"the fault is in /etc/nginx/conf.d/own.conf, which is not managed by opensource-agent: correct or remove it":                          "",
		"nginx.service could not bind\n2026/12/01 10:00:00 [emerg] 7#7: bind() to 0.0.0.0:2201 failed (98: Address already in use)":           "sudo ss -lntup",
		"not live within 5s: the web server on port 80 does not tell its revision (404 Not Found): another configuration is in force":         "sudo ss -lntup",
		"not live within 5s: ask for the sentinel name: read udp 127.0.0.1:53: connection refused":                                            "sudo ss -lntup",
		"commit /etc/nginx/nginx.conf: no space left on device (free some space on its file system)":                                          "df -h",
		"commit /etc/nginx/nginx.conf: disk quota exceeded (free some space on its file system)":                                              "df -h",
		"commit /etc/nginx/nginx.conf: read-only file system (its file system is mounted read-only)":                                          "df -h",
		"not applied, since what is about to be replaced could not be written down: disk I/O":                                                 "df -h",
		"nginx is not installed: install the Debian package nginx":                                                                            "sudo apt install nginx",
		"not applied, since nginx could not be reloaded: systemd has no unit nginx.service: install the Debian package nginx":                 "sudo apt install nginx",
		"the version of nginx could not be found out: is the Debian package nginx installed?":                                                 "sudo apt install nginx",
		"not applied, since nginx could not be reloaded: unit nginx.service is masked: run systemctl unmask nginx.service":                    "sudo systemctl unmask nginx",
		"not applied, since nginx could not be reloaded: no connection to systemd: dial unix /run/dbus/system_bus_socket: no such file":       "systemctl is-system-running",
		"commit /etc/nginx/nginx.conf: permission denied (run the agent as root; in an unprivileged container, have its root own the folder)": "ls -ld " + managedFiles,
		"commit /etc/nginx/nginx.conf: operation not permitted (it may be immutable, see lsattr(1))":                                          "lsattr " + managedFiles,
		"commit /etc/nginx/nginx.conf: device or resource busy (it is a mount point and cannot be replaced)":                                  "findmnt",
		"/etc/nginx/nginx.conf is not a regular file but Drwxr-xr-x":                                                                          "ls -ld " + managedFiles,
		"DNSMASQ_OPTS in /etc/default/dnsmasq has the option --conf-file: dnsmasq would not read the file that is managed here":               "grep -n DNSMASQ_OPTS /etc/default/dnsmasq",
		"it came alive and did not last: 1.8s later nginx.service is failed":                                                                  "journalctl -u nginx -n 20",
		"render template nginx/nginx.conf.tmpl: function \"x\" not defined":                                                                   ownTemplates,
		"at least 5 records are refused, and no more than 2 may be left out: nothing is changed":                                              "sudo opensource-agent check",
		"not applied yet: proving it may take 12s, and the pass ends in 3s":                                                                   "sudo opensource-agent check",
		"nginx: [emerg] host not found in upstream \"sso.gone.invalid:4180\" in /etc/nginx/nginx.conf:31":                                     "getent hosts sso.gone.invalid",
		"nginx: [emerg] host not found in upstream \"$(reboot)\" in /etc/nginx/nginx.conf:31":                                                 "",
	} {
		steps := remediesFor(checkin.ServiceReport{Message: message}, serviceDetail{serviceView: serviceView{Name: "nginx"}}, site)
		if !slices.ContainsFunc(steps, func(s step) bool { return s.Command == want }) {
			t.Errorf("%s\nleads to %+v, want %q", message, steps, want)
		}
	}
	of := remediesFor(checkin.ServiceReport{Message: "site.dhcpRange: 192.0.2.300 is no address"}, serviceDetail{serviceView: serviceView{Name: "dnsmasq"}}, site)
	if len(of) != 1 || of[0].Path != "/sites/7" {
		t.Errorf("%+v", of)
	}
	made := remediesFor(checkin.ServiceReport{Message: "x is masked"}, serviceDetail{serviceView: serviceView{Name: "x; reboot"}}, site)
	if len(made) != 1 || made[0].Command != "" {
		t.Errorf("a name that was made up is in a command: %+v", made)
	}
}

func TestAdviceForVolumes(t *testing.T) {
	for message, want := range map[string]string{
		`"/mnt/volumes" is on the root filesystem, not on a separate mount: mount the storage that "/mnt/volumes/a" is to lie on`: "pct set CT -mp0 /srv/v,mp=/srv/v",
		`"/mnt/volumes" is on a tmpfs (mounted at "/mnt"), which forgets its files: mount lasting storage there`:                  "findmnt",
		`"/mnt/volumes" is on a read-only mount (at "/mnt"): mount it read-write`:                                                 "findmnt",
		`make directory "/mnt/volumes/a": permission denied`:                                                                      "chown 100000:100000 /srv/v",
		`make directory "/mnt/volumes/a": no space left on device`:                                                                "df -h",
		`the storage mounted at "/mnt" did not answer in time: check the disk, or the server of a network mount`:                  "findmnt",
		`look at "/mnt/volumes/a": stale file handle`:                                                                             "findmnt",
		`"/mnt/a" is a symbolic link, and volumes are not reached through links: put a directory or a mount in its place`:         "",
		`what nobody has thought of`: "",
	} {
		rows := []volumeRow{{ID: 1, volumeView: volumeView{Class: bad, Message: message}}}
		p, any := volumeProblem(rows, store.Site{Site: inventory.Site{VolumesRoot: "/srv/v"}})
		if !any || len(p.Steps) < 2 || p.Steps[0].Command != want || p.Steps[0].Text == "" {
			t.Errorf("%s\nleads to %+v, want %q", message, p.Steps, want)
		}
	}
	if root := volumesRoot(store.Site{Site: inventory.Site{VolumesRoot: "/srv/$(reboot)"}}); root != "FOLDER" {
		t.Errorf("%q gets into a command", root)
	}
}

// TestARevisionThatDoesNotArrive: an agent that is heard, complains of nothing and
// does not run what its site was given minutes ago is not well.
func TestARevisionThatDoesNotArrive(t *testing.T) {
	now := time.Now()
	one, two := namedRevision{Number: 1, Words: "revision 1"}, namedRevision{Number: 2, Words: "revision 2"}
	for name, test := range map[string]struct {
		view agentPage
		want bool
	}{
		"it runs":         {agentPage{Published: two, InForce: two, InForceSince: "x", PublishedAt: now.Add(-time.Hour)}, false},
		"it does not":     {agentPage{Published: two, InForce: one, InForceSince: "x", PublishedAt: now.Add(-time.Hour)}, true},
		"not yet":         {agentPage{Published: two, InForce: one, InForceSince: "x", PublishedAt: now.Add(-time.Minute)}, false},
		"it never tells":  {agentPage{Published: two, PublishedAt: now.Add(-time.Hour)}, false},
		"none published":  {agentPage{InForce: one, InForceSince: "x"}, false},
		"of another time": {agentPage{Published: one, InForce: namedRevision{Words: "a configuration that this manager has not kept"}, InForceSince: "x", PublishedAt: now.Add(-time.Hour)}, true},
	} {
		if _, got := notTakenProblem(test.view, now); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAnAgentThatIsOlder(t *testing.T) {
	for _, test := range []struct {
		agent, manager string
		want           bool
	}{
		{"2026.9.3", "2026.12.0", true},
		{"2026.12.0", "2026.12.0", false},
		{"2027.1.0", "2026.12.0", false},
		{"devel", "2026.12.0", false},
		{"2026.12.0", "devel", false},
	} {
		a := store.Agent{Report: store.Report{Request: checkin.Request{Agent: &checkin.AgentInfo{Version: test.agent}}}}
		if p, got := oldProblem(a, test.manager); got != test.want || !regexp.MustCompile(regexp.QuoteMeta(test.agent)).MatchString(p.Title) {
			t.Errorf("%s at %s: %v, %q", test.agent, test.manager, got, p.Title)
		}
	}
}
