package soak

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestNoGrowth does many passes in a row, most of them with nothing to do, and
// looks for what piles up: files, processes, memory.
func TestNoGrowth(t *testing.T) {
	if os.Getenv(agentVariable) == "" {
		t.Parallel()
		needEverything(t)
		inWorld(t, buildAgent(t))
		return
	}
	passes := setting(t, passesVariable, 100)
	s := newWorld(t).begin(t)
	defer func() {
		if t.Failed() {
			t.Log(&s.transcript)
		}
		s.end()
	}()
	s.settleDown()
	before := s.size()
	start, every := time.Now(), max(50, passes/10)
	for i := 1; i <= passes; i++ {
		if i%every == 0 {
			s.transcript.Reset()
			s.thereAndBack()
		}
		if r := s.runAgent(byTimer, ""); r.code != settled || len(r.told) != 1 {
			t.Fatalf("pass %d: exit status %d, %d check-ins\n%s", i, r.code, len(r.told), r.log)
		}
	}
	took := time.Since(start)
	s.settleDown()
	after := s.sizeOf(before.Processes)
	t.Logf("%d passes in %s: %d files, %d bytes in %s, %d processes, KiB in memory %v; before %d, %d, %d, %v", passes, took.Round(time.Second),
		len(after.Files), after.bytesIn(stateDir), stateDir, after.Processes, after.Memory, len(before.Files), before.bytesIn(stateDir), before.Processes, before.Memory)
	about := cmp.Comparer(func(a, b int64) bool { return max(a, b)-min(a, b) <= 64 }) // dates may be shorter
	if diff := cmp.Diff(before.Files, after.Files, about); diff != "" {
		t.Errorf("files (-before +after):\n%s", diff)
	}
	if before.Processes != after.Processes {
		t.Errorf("%d processes, and before there were %d", after.Processes, before.Processes)
	}
	for name, was := range before.Memory {
		if is := after.Memory[name]; is > was+was/4 {
			t.Errorf("%s has %d KiB, and before it had %d", name, is, was)
		}
	}
}

// settleDown does passes until a further one has nothing to look at anew: what
// was learnt of a file is trusted once the file is two seconds old.
func (s *session) settleDown() {
	time.Sleep(2500 * time.Millisecond)
	for range 3 {
		s.pass(byTimer)
	}
	// An old worker stays for as long as a connection does.
	if s.line != nil {
		s.line.conn.Close()
		s.line = nil
	}
	deadline := time.Now().Add(10 * time.Second)
	for s.oldWorkers() > 0 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
}

// oldWorkers is how many workers of nginx wait for their connections to end.
func (s *session) oldWorkers() (old int) {
	for _, pid := range sessionOf(s.machine.nginx().process.Process.Pid) {
		title, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if strings.Contains(string(title), "shutting down") {
			old++
		}
	}
	return old
}

// thereAndBack changes something, and takes it back.
func (s *session) thereAndBack() {
	s.site.apps["app5"] = 5
	s.publish()
	s.pass(byTimer)
	delete(s.site.apps, "app5")
	s.publish()
	s.pass(byTimer)
}

// size is what an agent could let grow.
type size struct {
	Files     map[string]int64 // size in bytes
	Processes int
	Memory    map[string]int // resident, in KiB, of all processes of a service
}

// bytesIn is what the files of a folder take together.
func (s size) bytesIn(folder string) (bytes int64) {
	for path, size := range s.Files {
		if filepath.Dir(path) == folder {
			bytes += size
		}
	}
	return bytes
}

// sizeOf is size as soon as there are no more than some processes. One that is
// about to end is no growth; one that stays for ten seconds is.
func (s *session) sizeOf(processes int) size {
	deadline := time.Now().Add(10 * time.Second)
	for {
		now := s.size()
		if now.Processes <= processes || time.Now().After(deadline) {
			return now
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (s *session) size() size {
	now := size{Files: map[string]int64{}, Memory: map[string]int{}}
	for _, folder := range []string{"/etc", "/var/lib", "/run", volumesRoot} {
		_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || strings.HasPrefix(path, scratch) {
				return nil // our own, where the tests are noted
			}
			if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
				now.Files[path] = info.Size()
			}
			return nil
		})
	}
	for name, unit := range s.machine.units {
		pids := sessionOf(unit.process.Process.Pid)
		now.Processes += len(pids)
		for _, pid := range pids {
			now.Memory[serviceOf(name)] += residentKiB(pid)
		}
	}
	return now
}

// residentKiB is VmRSS of proc_pid_status(5).
func residentKiB(pid int) int {
	status, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	for line := range strings.Lines(string(status)) {
		if value, found := strings.CutPrefix(line, "VmRSS:"); found {
			kib, _ := strconv.Atoi(strings.Fields(value)[0])
			return kib
		}
	}
	return 0
}
