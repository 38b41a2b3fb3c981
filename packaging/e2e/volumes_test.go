//go:build e2e

package e2e

import (
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"opensource.internal/e2e/internal/wait"
)

// volumes follows volumes from a missing mount to directories, in a user
// namespace and with an owner of their own.
func volumes(t *testing.T, s *site) {
	data := s.createVolume(t, "data", "rw")

	t.Run("no mount", func(t *testing.T) {
		s.Run(t, "mkdir", "-p", "/mnt/volumes")
		s.wantPass(t, 4)
		s.wantVolume(t, data, "failed", "mount")
		if left := s.Run(t, "find", "/mnt/volumes", "-mindepth", "1"); left != "" {
			t.Errorf("without a mount directories were made:\n%s", left)
		}
		s.wantServed(t)
	})
	t.Run("bind mount", func(t *testing.T) {
		s.Run(t, "mkdir", "-p", "/srv/store")
		s.Run(t, "mount", "--bind", "/srv/store", "/mnt/volumes")
		shared := s.createVolume(t, "shared", "ro")
		s.wantPass(t, 0)
		s.wantVolume(t, data, "ready", "")
		s.wantVolume(t, shared, "ready", "")
		s.wantOwnerAndMode(t, data, "100000:100000 755")
		s.wantOwnerAndMode(t, shared, "100000:100000 555")
	})
	t.Run("an existing directory is left alone", func(t *testing.T) {
		// The path is the manager's: beside the first volume's.
		place := path.Join(path.Dir(s.manager.volume(t, data).HostPath), "database")
		s.Run(t, "mkdir", "-m", "0700", place)
		s.Run(t, "chown", "999:998", place)
		database := s.createVolume(t, "database", "rw")
		if got := s.manager.volume(t, database).HostPath; got != place {
			t.Fatalf("the volume is at %s, want %s", got, place)
		}
		for range 10 {
			s.wantPass(t, 0)
			s.wantOwnerAndMode(t, database, "999:998 700")
		}
		s.wantVolume(t, database, "ready", "")
	})
	t.Run("user namespace", func(t *testing.T) {
		// Only root is mapped: a directory made for 100000 cannot be given
		// to it, and belongs to whom the namespace's root is outside. Of
		// the directories made before, the owner does not even show.
		mapped := s.createVolume(t, "mapped", "rw")
		code, out := s.ExitCode(t, "unshare", "--user", "--map-root-user", "opensource-agent")
		if code != 4 {
			t.Errorf("the pass in a user namespace ended with %d, want 4:\n%s", code, out)
		}
		s.wantVolume(t, mapped, "ready", "")
		s.wantOwnerAndMode(t, mapped, "0:0 755")
		s.wantVolume(t, data, "failed", "user namespace")
		s.wantOwnerAndMode(t, data, "100000:100000 755")
		s.wantPass(t, 0)
		s.wantVolume(t, data, "ready", "")
	})
	t.Run("one bad volume does not stop the next", func(t *testing.T) {
		bad := s.createVolume(t, "bad", "rw")
		s.Run(t, "ln", "-s", "/etc", s.manager.volume(t, bad).HostPath)
		good := s.createVolume(t, "good", "rw")
		etc := s.Run(t, "stat", "-c", "%u:%g %a", "/etc")
		s.wantPass(t, 4)
		s.wantVolume(t, bad, "failed", "symbolic link")
		s.wantVolume(t, good, "ready", "")
		if now := s.Run(t, "stat", "-c", "%u:%g %a", "/etc"); now != etc {
			t.Errorf("/etc is %s, was %s", now, etc)
		}
		s.manager.remove(t, fmt.Sprintf("/volumes/%d", bad))
		s.wantPass(t, 0)
	})
}

func (s *site) createVolume(t testing.TB, name, mode string) int64 {
	t.Helper()
	return s.manager.create(t, fmt.Sprintf("/containers/%d/volumes", s.web),
		object{"name": name, "mountPath": "/srv/" + name, "mode": mode})
}

// wantVolume wants the manager to show a status, with a word in its message.
func (s *site) wantVolume(t testing.TB, id int64, status, word string) {
	t.Helper()
	wait.For(t, 5*time.Second, "the result of a volume", func() error {
		v := s.manager.volume(t, id)
		if v.Status != status || !strings.Contains(v.StatusMessage, word) {
			return fmt.Errorf("%s is %s: %s; want %s: … %s", v.HostPath, v.Status, v.StatusMessage, status, word)
		}
		return nil
	})
}

func (s *site) wantOwnerAndMode(t testing.TB, id int64, want string) {
	t.Helper()
	place := s.manager.volume(t, id).HostPath
	if got := strings.TrimSpace(s.Run(t, "stat", "-c", "%u:%g %a", place)); got != want {
		t.Errorf("%s is %s, want %s", place, got, want)
	}
}
