package state

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/host"
	"opensource.internal/agent/internal/volumes"
)

const emptySite = `{"site": {"id":1,"name":"lab","nodes":[]}, "nginx": {"httpServices":[],"streamServices":[],"externalDomains":[]}}`

func open(t testing.TB) *Dir {
	t.Helper()
	d, err := Open(filepath.Join(t.TempDir(), "lib", "agent"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func reopen(t testing.TB, d *Dir) *Dir {
	t.Helper()
	again, err := Open(d.path)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func put(t testing.TB, d *Dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(d.path, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func fullState() State {
	at := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	return State{
		Services: map[string]Service{"nginx": {
			LastApply: checkin.ApplyFailure, Outcome: checkin.OutcomeRolledBack, Message: "bind() failed\nline 2",
			ReceivedETag: `"b"`, RunningETag: `"a"`, AppliedAt: &at,
			Quarantined: []checkin.QuarantinedItem{{Kind: checkin.KindHTTP, ID: 3, Name: "app", Reason: "odd"}},
		}},
		Volumes: Volumes{
			Records: map[int64]volumes.Record{42: {Path: "/mnt/v/42", UID: 1, GID: 2, Mode: "rw", Created: true, Finished: true}},
			Results: map[string]checkin.VolumeReport{"42": {Applied: true}},
			Told:    true,
		},
		Fingerprint: "abc",
		Running:     &checkin.Running{ETag: `"a"`, Since: at},
		Host:        host.Cache{Tools: map[string]host.Tool{"/usr/sbin/nginx": {Version: "1.22.1"}}},
		RealSite:    true,
	}
}

func TestStateComesBackAsSaved(t *testing.T) {
	d := open(t)
	want := fullState()
	if err := d.SaveState(want); err != nil {
		t.Fatal(err)
	}
	got, _, warnings := reopen(t, d).Load()
	if len(warnings) > 0 {
		t.Error(warnings)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSnapshotComesBackByteForByte(t *testing.T) {
	// The tag is a digest of exactly these bytes: spaces and escapes count.
	data := strings.Replace(emptySite, "lab", `<lab>\u0026 `, 1)
	want := Accepted{ETag: checkin.ETag([]byte(data)), Data: json.RawMessage(data)}
	d := open(t)
	if err := d.SaveAccepted(want); err != nil {
		t.Fatal(err)
	}
	state, got, warnings := reopen(t, d).Load()
	if len(warnings) > 0 {
		t.Error(warnings)
	}
	if got.ETag != want.ETag || string(got.Data) != data {
		t.Errorf("got %s %s, want %s %s", got.ETag, got.Data, want.ETag, data)
	}
	if got.Snapshot.Site == nil || got.Snapshot.Site.Name != "<lab>& " {
		t.Errorf("snapshot was not parsed: %+v", got.Snapshot)
	}
	if !state.RealSite {
		t.Error("a site was accepted, but RealSite is false without state.json")
	}
}

func TestWhatAServiceRunsComesBack(t *testing.T) {
	d := open(t)
	if got, err := d.LoadRunning("nginx"); err != nil || got.Data != nil {
		t.Errorf("a first run has %+v, %v", got, err)
	}
	snapshot, err := checkin.ParseSnapshot([]byte(emptySite))
	if err != nil {
		t.Fatal(err)
	}
	want := Accepted{ETag: `"a"`, Data: []byte(emptySite), Snapshot: snapshot}
	other := Accepted{ETag: "", Data: []byte(`{"site":null,` + emptySite[len(`{"site": {"id":1,"name":"lab","nodes":[]},`):]), Snapshot: checkin.Bootstrap()}
	for service, running := range map[string]Accepted{"nginx": want, "dnsmasq": other} {
		if err := d.SaveRunning(service, running); err != nil {
			t.Fatal(err)
		}
	}
	again := reopen(t, d)
	for service, running := range map[string]Accepted{"nginx": want, "dnsmasq": other} {
		got, err := again.LoadRunning(service)
		if diff := cmp.Diff(running, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", service, err, diff)
		}
	}
	for name, content := range map[string]string{"empty": "", "half": emptySite[:40], "null": "null", "a tag that is none": `{"etag":"x","data":` + emptySite + `}`} {
		put(t, d, "running-nginx.json", content)
		if got, err := d.LoadRunning("nginx"); err == nil || !strings.Contains(err.Error(), "load what nginx runs: ") || got.Data != nil {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

func TestFirstRunHasNothingAndWarnsOfNothing(t *testing.T) {
	state, accepted, warnings := open(t).Load()
	if diff := cmp.Diff(State{}, state); diff != "" || accepted.Data != nil || len(warnings) > 0 {
		t.Errorf("state %s, accepted %v, warnings %v", diff, accepted, warnings)
	}
}

func TestDamagedStateIsAFirstRun(t *testing.T) {
	whole, err := encodeState(fullState())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"empty":       "",
		"blank":       " \n",
		"half":        string(whole[:len(whole)/2]),
		"NUL bytes":   strings.Repeat("\x00", 4096),
		"null":        "null",
		"list":        "[]",
		"number":      "7",
		"two objects": "{}{}",
		"text":        "not JSON",
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			put(t, d, stateFile, content)
			put(t, d, snapshotFile, content)
			state, accepted, warnings := d.Load()
			if diff := cmp.Diff(State{}, state); diff != "" {
				t.Error(diff)
			}
			if accepted.Data != nil || accepted.ETag != "" {
				t.Errorf("accepted %+v", accepted)
			}
			if len(warnings) != 2 || !strings.Contains(warnings[0].Error(), stateFile) || !strings.Contains(warnings[1].Error(), snapshotFile) {
				t.Errorf("want one warning for each file, got %v", warnings)
			}
			if err := d.SaveState(fullState()); err != nil {
				t.Fatal(err)
			}
			if _, _, warnings := reopen(t, d).Load(); len(warnings) != 1 {
				t.Errorf("state.json is still damaged after saving: %v", warnings)
			}
		})
	}
}

func TestOddFieldIsLeftOutAlone(t *testing.T) {
	d := open(t)
	put(t, d, stateFile, `{"services": 7, "volumes": {"records": {"x": {}}}, "fingerprint": "abc", "realSite": true,
		"running": {"etag": "\"a\nb\"", "since": "2026-12-01T10:00:00Z"}, "unknown": {"x": 1}}`)
	state, _, warnings := d.Load()
	if diff := cmp.Diff(State{Fingerprint: "abc", RealSite: true}, state); diff != "" {
		t.Error(diff)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0].Error(), "services") || !strings.Contains(warnings[0].Error(), "volumes") {
		t.Errorf("want one warning that names both fields, got %v", warnings)
	}
}

func TestStateOfTheEarlierGeneration(t *testing.T) {
	for name, content := range map[string]string{
		"with tag":           `{"etag":"\"abc\"","lastApply":{"nginx":"success","dnsmasq":"failure","odd":"maybe"}}`,
		"tag with line feed": `{"etag":"\"a\nbc\"","lastApply":{"nginx":"success","dnsmasq":"failure"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			put(t, d, stateFile, content)
			state, accepted, warnings := d.Load()
			want := map[string]Service{"nginx": {LastApply: checkin.ApplySuccess}, "dnsmasq": {LastApply: checkin.ApplyFailure}}
			if diff := cmp.Diff(want, state.Services); diff != "" {
				t.Error(diff)
			}
			if accepted.ETag != "" || len(warnings) > 0 || !state.RealSite {
				t.Errorf("tag %q, warnings %v, real site %v", accepted.ETag, warnings, state.RealSite)
			}
		})
	}
}

func TestResultsThatNoApplyHasAreForgotten(t *testing.T) {
	d := open(t)
	put(t, d, stateFile, `{"services": {"nginx": {"lastApply": "great"}, "dnsmasq": {"lastApply": "success"}}, "fingerprint": "abc"}`)
	state, _, _ := d.Load()
	want := State{Services: map[string]Service{"nginx": {}, "dnsmasq": {LastApply: checkin.ApplySuccess}}}
	if diff := cmp.Diff(want, state); diff != "" {
		t.Error(diff)
	}
}

func TestSnapshotIsTakenOnlyWhole(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		want    string // in the warning; empty if the snapshot is good
	}{
		"good":                {`{"etag":"\"a\"","data":` + emptySite + `}`, ""},
		"no tag":              {`{"etag":"","data":` + emptySite + `}`, ""},
		"bootstrap":           {`{"etag":"\"a\"","data":{"site":null,"nginx":{"httpServices":[],"streamServices":[],"externalDomains":[]}}}`, ""},
		"more fields":         {`{"etag":"\"a\"","data":` + emptySite + `,"later":{}}` + "\n", ""},
		"two values":          {`{"etag":"\"a\"","data":` + emptySite + `}{}` + "\n", "after top-level value"},
		"tag with line feed":  {`{"etag":"\"a\nb\"","data":` + emptySite + `}`, "not an entity tag"},
		"tag without quotes":  {`{"etag":"a","data":` + emptySite + `}`, "not an entity tag"},
		"tag is a number":     {`{"etag":7,"data":` + emptySite + `}`, "etag"},
		"no data":             {`{"etag":"\"a\""}`, "no data"},
		"data null":           {`{"etag":"\"a\"","data":null}`, "site is missing"},
		"site without lists":  {`{"etag":"\"a\"","data":{"site":{"id":1},"nginx":{}}}`, "must be a list"},
		"no site":             {`{"etag":"\"a\"","data":{"nginx":{"httpServices":[],"streamServices":[],"externalDomains":[]}}}`, "site is missing"},
		"cut in the snapshot": {`{"etag":"\"a\"","data":` + emptySite[:60], "unexpected end"},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			put(t, d, snapshotFile, c.content)
			_, accepted, warnings := d.Load()
			if c.want == "" {
				if accepted.Data == nil || len(warnings) > 0 {
					t.Errorf("refused: %v", warnings)
				}
				return
			}
			if accepted.Data != nil || accepted.ETag != "" {
				t.Errorf("accepted %+v", accepted)
			}
			if len(warnings) != 1 || !strings.Contains(warnings[0].Error(), c.want) {
				t.Errorf("got %v, want %q", warnings, c.want)
			}
		})
	}
}

func TestSaveRefusesWhatLoadWouldNotTake(t *testing.T) {
	d := open(t)
	for name, a := range map[string]Accepted{
		"odd tag":  {ETag: "a\nb", Data: json.RawMessage(emptySite)},
		"no JSON":  {ETag: `"a"`, Data: json.RawMessage("{")},
		"no bytes": {ETag: `"a"`},
	} {
		if d.SaveAccepted(a) == nil {
			t.Errorf("%s: saved", name)
		}
	}
	if _, err := os.Stat(filepath.Join(d.path, snapshotFile)); !os.IsNotExist(err) {
		t.Errorf("a refused snapshot left a file: %v", err)
	}
}

func TestNothingIsWrittenThatIsThereAlready(t *testing.T) {
	d := open(t)
	accepted := Accepted{ETag: `"a"`, Data: json.RawMessage(emptySite)}
	save := func(d *Dir, s State) {
		t.Helper()
		if err := d.SaveState(s); err != nil {
			t.Fatal(err)
		}
		if err := d.SaveAccepted(accepted); err != nil {
			t.Fatal(err)
		}
	}
	inodes := func() [2]os.FileInfo {
		var infos [2]os.FileInfo
		for i, name := range []string{stateFile, snapshotFile} {
			info, err := os.Stat(filepath.Join(d.path, name))
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode() != 0o600 {
				t.Errorf("%s has mode %v", name, info.Mode())
			}
			infos[i] = info
		}
		return infos
	}
	save(d, fullState())
	before := inodes()

	again := reopen(t, d)
	loaded, _, _ := again.Load()
	save(again, loaded)
	save(again, loaded)
	for i, info := range inodes() {
		if !os.SameFile(before[i], info) {
			t.Errorf("%s was written again", info.Name())
		}
	}

	loaded.Fingerprint = "other"
	save(again, loaded)
	after := inodes()
	if os.SameFile(before[0], after[0]) || !os.SameFile(before[1], after[1]) {
		t.Error("only state.json should have been written")
	}
}

func TestOddThingsInPlaceOfTheFiles(t *testing.T) {
	d := open(t)
	if err := os.Mkdir(filepath.Join(d.path, stateFile), 0o700); err != nil {
		t.Fatal(err)
	}
	mkfifo(t, filepath.Join(d.path, snapshotFile))
	_, _, warnings := d.Load()
	if len(warnings) != 2 {
		t.Errorf("want two warnings, got %v", warnings)
	}
	if err := d.SaveState(fullState()); err == nil || !strings.Contains(err.Error(), "save state") {
		t.Errorf("saved over a directory: %v", err)
	}
}

func TestLeftoversOfAKilledPassGoWithTheNextSave(t *testing.T) {
	d := open(t)
	leftover := "." + stateFile + ".opensource-agent.new-123456"
	put(t, d, leftover, "half")
	if err := d.SaveState(fullState()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(d.path, leftover)); !os.IsNotExist(err) {
		t.Errorf("leftover is still there: %v", err)
	}
}

func TestOpen(t *testing.T) {
	d := open(t)
	info, err := os.Stat(d.path)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	put(t, d, "file", "")
	if _, err := Open(filepath.Join(d.path, "file")); err == nil {
		t.Error("a file was opened as state directory")
	}
	if _, err := Open(filepath.Join(d.path, "file", "below")); err == nil {
		t.Error("a folder below a file was opened")
	}
}

func FuzzParseState(f *testing.F) {
	whole, _ := encodeState(fullState())
	f.Add(whole)
	f.Add([]byte("null"))
	f.Add([]byte(`{"etag":"a","lastApply":{"nginx":"success"}}`))
	f.Add(make([]byte, 100))
	f.Fuzz(func(t *testing.T, content []byte) {
		state, _ := parseState(content) // must not panic
		saved, err := encodeState(state)
		if err != nil {
			return // a year no RFC 3339 date can have
		}
		again, err := parseState(saved)
		if err != nil {
			t.Fatalf("cannot read back %s: %v", saved, err)
		}
		if diff := cmp.Diff(state, again, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("state changed by saving: %s", diff)
		}
	})
}

func FuzzParseAccepted(f *testing.F) {
	f.Add([]byte(`{"etag":"\"a\"","data":` + emptySite + `}`))
	f.Add([]byte(`{"etag":"\"a\nb\"","data":null}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		accepted, err := parseAccepted(content)
		if err != nil {
			if accepted.Data != nil || accepted.ETag != "" {
				t.Fatalf("refused and yet returned %+v", accepted)
			}
			return
		}
		saved, err := encodeAccepted(accepted)
		if err != nil {
			t.Fatalf("cannot save what was loaded: %v", err)
		}
		again, err := parseAccepted(saved)
		if err != nil || again.ETag != accepted.ETag || !bytes.Equal(again.Data, accepted.Data) {
			t.Fatalf("read back %+v, %v", again, err)
		}
	})
}

func BenchmarkLoad(b *testing.B) {
	snapshot := checkin.Bootstrap()
	snapshot.Site = &checkin.Site{ID: 1, Nodes: []checkin.Node{}, DNSRecords: []checkin.DNSRecord{}, Volumes: []checkin.Volume{}}
	for i := range 1000 {
		snapshot.NGINX.HTTPServices = append(snapshot.NGINX.HTTPServices, checkin.HTTPService{
			ID: int64(i), InternalPort: 8080, Container: checkin.Backend{IPv4Address: "192.0.2.101"},
			ExternalHostname: "app", BackendProtocol: "http", ExternalDomain: checkin.HTTPServiceDomain{Name: "example.com"},
		})
	}
	data, etag, err := checkin.Encode(snapshot)
	if err != nil {
		b.Fatal(err)
	}
	d := open(b)
	if err := d.SaveAccepted(Accepted{ETag: etag, Data: data}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, _, warnings := d.Load(); len(warnings) > 0 {
			b.Fatal(warnings)
		}
	}
}
