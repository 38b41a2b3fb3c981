package systemd

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"
)

const unit = "nginx.service"

func TestProperties(t *testing.T) {
	bus := startBus(t)
	bus.set("ActiveState", "active")
	bus.set("LoadState", "loaded")
	bus.set("MainPID", uint32(4711))
	bus.set("ExecMainStartTimestamp", uint64(1771234560_250000))
	bus.set("NRestarts", uint32(2))
	m := bus.manager(t)

	active, err := m.ActiveState(t.Context(), unit)
	wantNoError(t, err)
	load, err := m.LoadState(t.Context(), unit)
	wantNoError(t, err)
	process, err := m.MainProcess(t.Context(), unit)
	wantNoError(t, err)
	if active != "active" || load != "loaded" || process.PID != 4711 || process.Restarts != 2 || !process.Started.Equal(time.UnixMilli(1771234560250)) {
		t.Errorf("got %s, %s, %+v", active, load, process)
	}
}

func TestPropertyOfAnotherType(t *testing.T) {
	bus := startBus(t)
	bus.set("ActiveState", uint32(1))
	_, err := bus.manager(t).ActiveState(t.Context(), unit)
	if err == nil || !strings.Contains(err.Error(), "ask for the state of nginx.service: property ActiveState is not of the documented type") {
		t.Errorf("got %v", err)
	}
}

func TestJobs(t *testing.T) {
	for name, test := range map[string]struct {
		result string
		want   string
	}{
		"done":     {"done", ""},
		"failed":   {"failed", "restart nginx.service: job failed (start-limit-hit)"},
		"canceled": {"canceled", "restart nginx.service: job canceled (start-limit-hit)"},
	} {
		t.Run(name, func(t *testing.T) {
			bus := startBus(t)
			bus.endJobs(test.result)
			bus.set("Result", "start-limit-hit")
			err := bus.manager(t).Restart(t.Context(), unit)
			if (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
				t.Errorf("got %v, want %q", err, test.want)
			}
			var job *JobError
			if err != nil && (!errors.As(err, &job) || job.Result != test.result) {
				t.Errorf("not a JobError: %v", err)
			}
			bus.wantCalls(t, "ResetFailedUnit nginx.service", "RestartUnit nginx.service replace")
		})
	}
}

func TestReloadAndSignal(t *testing.T) {
	bus := startBus(t)
	bus.endJobs("done")
	m := bus.manager(t)
	wantNoError(t, m.ReloadOrRestart(t.Context(), unit))
	wantNoError(t, m.HUP(t.Context(), unit))
	bus.wantCalls(t, "ResetFailedUnit nginx.service", "ReloadOrRestartUnit nginx.service replace", "KillUnit nginx.service main hangup")
}

func TestJobThatNeverEnds(t *testing.T) {
	bus := startBus(t) // without a result
	m := bus.manager(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := m.Restart(ctx, unit)
	if !errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), "the job did not end") {
		t.Errorf("got %v", err)
	}
	// The bus is as good as before.
	bus.set("ActiveState", "deactivating")
	if state, err := m.ActiveState(t.Context(), unit); state != "deactivating" || err != nil {
		t.Errorf("got %q, %v", state, err)
	}
}

func TestCallThatIsNeverAnswered(t *testing.T) {
	bus := startBus(t)
	bus.fallSilent(t)
	m := bus.manager(t)
	start := time.Now()
	for range 3 { // only the first one waits
		if _, err := m.ActiveState(t.Context(), unit); !errors.Is(err, ErrTimeout) {
			t.Errorf("got %v", err)
		}
	}
	if took := time.Since(start); took > callTimeout+2*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestBusThatAcceptsAndStaysSilent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bus")
	listener, err := net.Listen("unix", path)
	wantNoError(t, err)
	defer listener.Close()
	m := managerAt(t, "unix:path="+path)
	start := time.Now()
	for range 3 {
		if _, err := m.ActiveState(t.Context(), unit); !errors.Is(err, ErrTimeout) {
			t.Errorf("got %v", err)
		}
	}
	if took := time.Since(start); took > connectTimeout+2*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestNoBus(t *testing.T) {
	m := managerAt(t, "unix:path="+filepath.Join(t.TempDir(), "missing"))
	_, err := m.ActiveState(t.Context(), unit)
	if !errors.Is(err, ErrNoBus) || !errors.Is(err, syscall.ENOENT) {
		t.Errorf("got %v", err)
	}
	if err := m.Restart(t.Context(), unit); !errors.Is(err, ErrNoBus) {
		t.Errorf("got %v", err)
	}
	m.Close()
	if err := m.HUP(t.Context(), unit); !errors.Is(err, ErrNoBus) {
		t.Errorf("after Close: %v", err)
	}
}

// A deadline of the caller is not held against the bus.
func TestBusIsUsedAgainAfterTheCallersDeadline(t *testing.T) {
	bus := startBus(t)
	bus.set("ActiveState", "active")
	m := bus.manager(t)
	past, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.ActiveState(past, unit); !errors.Is(err, ErrTimeout) {
		t.Errorf("got %v", err)
	}
	if state, err := m.ActiveState(t.Context(), unit); state != "active" || err != nil {
		t.Errorf("got %q, %v", state, err)
	}
}

// bus is a private message bus with a stand-in for systemd on it.
type bus struct {
	address string
	conn    *dbus.Conn

	mutex      sync.Mutex // of what follows
	properties map[string]any
	result     string        // of every job; empty for jobs that never end
	silent     chan struct{} // blocks the answer to properties
	calls      []string
}

func (b *bus) set(property string, value any) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.properties[property] = value
}

func (b *bus) endJobs(result string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.result = result
}

func (b *bus) fallSilent(t *testing.T) {
	t.Helper()
	b.mutex.Lock()
	defer b.mutex.Unlock()
	silent := make(chan struct{})
	t.Cleanup(func() { close(silent) })
	b.silent = silent
}

func startBus(t *testing.T) *bus {
	t.Helper()
	if _, err := exec.LookPath("dbus-daemon"); err != nil {
		t.Skip("NOT TESTED: dbus-daemon is not installed")
	}
	daemon := exec.Command("dbus-daemon", "--session", "--nofork", "--print-address",
		"--address=unix:path="+filepath.Join(t.TempDir(), "bus"))
	stdout, err := daemon.StdoutPipe()
	wantNoError(t, err)
	wantNoError(t, daemon.Start())
	t.Cleanup(func() {
		_ = daemon.Process.Kill()
		_ = daemon.Wait()
	})
	address, err := bufio.NewReader(stdout).ReadString('\n')
	wantNoError(t, err)

	b := &bus{address: strings.TrimSpace(address), properties: map[string]any{}}
	b.conn, err = dbus.Connect(b.address)
	wantNoError(t, err)
	t.Cleanup(func() { _ = b.conn.Close() })
	wantNoError(t, b.conn.Export(fakeManager{b}, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"))
	path := dbus.ObjectPath("/org/freedesktop/systemd1/unit/" + sd.PathBusEscape(unit))
	wantNoError(t, b.conn.Export(fakeUnit{b}, path, "org.freedesktop.DBus.Properties"))
	wantNoError(t, b.conn.Export(fakeUnit{b}, "/org/freedesktop/systemd1", "org.freedesktop.DBus.Properties"))
	_, err = b.conn.RequestName("org.freedesktop.systemd1", 0)
	wantNoError(t, err)
	return b
}

func (b *bus) manager(t *testing.T) *Manager {
	t.Helper()
	return managerAt(t, b.address)
}

func managerAt(t *testing.T, address string) *Manager {
	t.Helper()
	m := &Manager{dial: func(ctx context.Context) (*sd.Conn, error) {
		return sd.NewConnection(func() (*dbus.Conn, error) { return dbus.Connect(address, dbus.WithContext(ctx)) })
	}}
	t.Cleanup(m.Close)
	return m
}

func (b *bus) called(words ...string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.calls = append(b.calls, strings.Join(words, " "))
}

func (b *bus) wantCalls(t *testing.T, want ...string) {
	t.Helper()
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if diff := cmp.Diff(want, b.calls); diff != "" {
		t.Error(diff)
	}
}

// job queues a job, and ends it at once, before the caller knows its name.
func (b *bus) job(name string) (dbus.ObjectPath, *dbus.Error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	path := dbus.ObjectPath("/org/freedesktop/systemd1/job/7")
	if b.result != "" {
		_ = b.conn.Emit("/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager.JobRemoved", uint32(7), path, name, b.result)
	}
	return path, nil
}

type fakeManager struct{ *bus }

func (f fakeManager) RestartUnit(name, mode string) (dbus.ObjectPath, *dbus.Error) {
	f.called("RestartUnit", name, mode)
	return f.job(name)
}

func (f fakeManager) ReloadOrRestartUnit(name, mode string) (dbus.ObjectPath, *dbus.Error) {
	f.called("ReloadOrRestartUnit", name, mode)
	return f.job(name)
}

func (f fakeManager) ResetFailedUnit(name string) *dbus.Error {
	f.called("ResetFailedUnit", name)
	return dbus.NewError("org.freedesktop.systemd1.NoSuchUnit", []any{"not loaded"})
}

func (f fakeManager) KillUnit(name, who string, signal int32) *dbus.Error {
	f.called("KillUnit", name, who, syscall.Signal(signal).String())
	return nil
}

type fakeUnit struct{ *bus }

func (f fakeUnit) Get(_, name string) (dbus.Variant, *dbus.Error) {
	f.mutex.Lock()
	silent := f.silent
	value, known := f.properties[name]
	f.mutex.Unlock()
	if silent != nil {
		<-silent
	}
	if !known {
		return dbus.Variant{}, dbus.NewError("org.freedesktop.DBus.Error.UnknownProperty", nil)
	}
	return dbus.MakeVariant(value), nil
}

func wantNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
