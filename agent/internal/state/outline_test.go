package state

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
)

// The snapshots that an outline has to keep apart.
var outlined = map[string]string{
	"no volumes known": `{"site":{"id":7,"nodes":[]},"nginx":{"httpServices":[],"streamServices":[],"externalDomains":[]}}`,
	"no volumes":       `{"site":{"id":7,"nodes":[],"volumes":[]},"nginx":{"httpServices":[],"streamServices":[],"externalDomains":[]}}`,
	"volumes": `{"site":{"id":7,"nodes":[],"volumes":[{"id":1,"hostPath":"/mnt/a","mode":"rw","uid":1,"gid":2},{"id":2,"hostPath":"/mnt/b","mode":755,"uid":0,"gid":0}]},` +
		`"nginx":{"httpServices":[],"streamServices":[],"externalDomains":[{"name":"example.com"}]}}`,
	"no site": `{"site":null,"nginx":{"httpServices":[],"streamServices":[],"externalDomains":[]}}`,
}

// keep saves a snapshot with its outline.
func keep(t *testing.T, d *Dir, data string) Accepted {
	t.Helper()
	snapshot, err := checkin.ParseSnapshot([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	accepted := Accepted{ETag: `"a"`, Data: []byte(data), Snapshot: snapshot}
	outline, err := NewOutline(accepted, []string{"example.com"}, "1.0")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.SaveAccepted(accepted); err != nil {
		t.Fatal(err)
	}
	if err := d.SaveState(State{Outline: outline}); err != nil {
		t.Fatal(err)
	}
	return accepted
}

func TestAnOutlineTellsWhatAnUnchangedPassHasToKnow(t *testing.T) {
	for name, data := range outlined {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			want := keep(t, d, data)
			_, got, warnings := OpenToRead(d.path).LoadOutlined("1.0")
			if len(warnings) > 0 || !got.Outlined || got.ETag != want.ETag || string(got.Data) != data || got.Digest() != want.Digest() {
				t.Errorf("%+v, %v", got, warnings)
			}
			if (got.Snapshot.Site == nil) != (want.Snapshot.Site == nil) || len(got.Snapshot.NGINX.ExternalDomains) != 1 {
				t.Errorf("%+v", got.Snapshot)
			}
			if site := want.Snapshot.Site; site != nil {
				if diff := cmp.Diff(checkin.Site{ID: 7, Volumes: site.Volumes}, *got.Snapshot.Site); diff != "" {
					t.Error(diff)
				}
			}
			whole, err := got.Whole()
			if diff := cmp.Diff(want, whole); diff != "" || err != nil {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

// What is not known to be outlined is read whole.
func TestAnOutlineOfSomethingElse(t *testing.T) {
	const other = `{"etag":"\"b\"","data":{"site":{"id":8,"nodes":[]},"nginx":{"httpServices":[],"streamServices":[],"externalDomains":[]}}}` + "\n"
	for name, test := range map[string]struct {
		agent  string
		spoil  func(t *testing.T, dir string)
		id     int64
		warned string
	}{
		"another version of the agent": {"1.1", func(*testing.T, string) {}, 7, ""},
		"another snapshot": {"1.0", func(t *testing.T, dir string) {
			overwrite(t, filepath.Join(dir, snapshotFile), other)
		}, 8, ""},
		"a damaged state": {"1.0", func(t *testing.T, dir string) {
			overwrite(t, filepath.Join(dir, stateFile), "{")
		}, 7, stateFile},
		"a damaged snapshot": {"1.0", func(t *testing.T, dir string) {
			overwrite(t, filepath.Join(dir, snapshotFile), `{"etag":"\"a\"","data":{"site":`)
		}, 0, snapshotFile},
		"no snapshot": {"1.0", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, snapshotFile)); err != nil {
				t.Fatal(err)
			}
		}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			keep(t, d, outlined["volumes"])
			test.spoil(t, d.path)
			_, got, warnings := OpenToRead(d.path).LoadOutlined(test.agent)
			if got.Outlined || test.id == 0 && got.Data != nil || test.id != 0 && got.Snapshot.Site.ID != test.id {
				t.Errorf("%+v", got)
			}
			if len(warnings) != len(strings.Fields(test.warned)) || len(warnings) == 1 && !strings.Contains(warnings[0].Error(), test.warned) {
				t.Errorf("warnings %v", warnings)
			}
		})
	}
}

func overwrite(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
