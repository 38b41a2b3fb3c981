package soak

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	sd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
)

// The real programs; before them, on the agent's path, stand the tools of
// tools_test.go.
const (
	nginxProgram   = "/usr/sbin/nginx"
	dnsmasqProgram = "/usr/sbin/dnsmasq"
)

// machine stands in for systemd: it owns its name on a message bus of its own,
// and starts, reloads, signals and stops real programs.
type machine struct {
	address string
	conn    *dbus.Conn
	jobs    sync.Mutex // one at a time
	pending sync.WaitGroup
	units   map[string]*unit

	mutex sync.Mutex // of what follows
	job   uint32
	odd   []string // what was asked for that there is no stand-in for
}

// unit is a service of the machine, as Debian's unit describes it.
type unit struct {
	check  []string // ExecStartPre
	start  []string // ExecStart, in the foreground
	reload []string // ExecReload; without it, reloading is restarting
	conf   string   // its main file
	pid    string   // its PID file, written when it is ready
	log    *journal

	mutex   sync.Mutex // of what follows
	process *exec.Cmd
	ended   chan struct{}
	up      bool // it was ready once
	started time.Time
	result  string
	starts  int    // how often it was started
	loads   []load // what it was made to load, since the last look
	running load   // what it was made to load last, with success
	// refuse lets the next jobs fail; before is called ahead of each.
	refuse bool
	before func()
}

// load is the content of the main file that a program was made to load.
type load struct {
	how, digest string
	revision    string // that it shows; empty for one that is not ours
}

// shownRevision finds the revision in nginx's main file.
var shownRevision = regexp.MustCompile(`return 200 ([0-9a-f]{64});`)

func newNGINX(log *journal) *unit {
	const globals = "daemon off; master_process on;"
	return &unit{
		check:  []string{nginxProgram, "-t", "-q", "-g", globals},
		start:  []string{nginxProgram, "-g", globals},
		reload: []string{nginxProgram, "-g", globals, "-s", "reload"},
		conf:   "/etc/nginx/nginx.conf", pid: "/run/nginx.pid", log: log,
	}
}

func newDNSMasq(log *journal) *unit {
	return &unit{
		check: []string{dnsmasqProgram, "--test"},
		start: []string{
			dnsmasqProgram, "--keep-in-foreground", "--user=nobody", "--log-facility=-", "--pid-file=/run/dnsmasq.pid",
		},
		conf: "/etc/dnsmasq.conf", pid: "/run/dnsmasq.pid", log: log,
	}
}

// newMachine starts the message bus and takes systemd's place on it.
func newMachine(dir string) (*machine, error) {
	daemon := exec.Command("dbus-daemon", "--session", "--nofork", "--print-address", "--address=unix:path="+filepath.Join(dir, "bus"))
	stdout, err := daemon.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := daemon.Start(); err != nil {
		return nil, err
	}
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, err
	}
	nginxLog, err := newJournal()
	if err != nil {
		return nil, err
	}
	dnsmasqLog, err := newJournal()
	if err != nil {
		return nil, err
	}
	m := &machine{
		address: strings.TrimSpace(address),
		units:   map[string]*unit{"nginx.service": newNGINX(nginxLog), "dnsmasq.service": newDNSMasq(dnsmasqLog)},
	}
	if m.conn, err = dbus.Connect(m.address); err != nil {
		return nil, err
	}
	if err := m.conn.Export(bus{m}, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"); err != nil {
		return nil, err
	}
	for name, unit := range m.units {
		path := dbus.ObjectPath("/org/freedesktop/systemd1/unit/" + sd.PathBusEscape(name))
		if err := m.conn.Export(busUnit{m, unit}, path, "org.freedesktop.DBus.Properties"); err != nil {
			return nil, err
		}
	}
	_, err = m.conn.RequestName("org.freedesktop.systemd1", 0)
	return m, err
}

func (m *machine) nginx() *unit   { return m.units["nginx.service"] }
func (m *machine) dnsmasq() *unit { return m.units["dnsmasq.service"] }

// queue does a job and tells its result when it is done.
func (m *machine) queue(name string, do func(*unit) error) (dbus.ObjectPath, *dbus.Error) {
	unit, known := m.units[name]
	if !known {
		return "", dbus.NewError("org.freedesktop.systemd1.NoSuchUnit", []any{"no unit " + name})
	}
	m.mutex.Lock()
	m.job++
	number := m.job
	m.mutex.Unlock()
	path := dbus.ObjectPath(fmt.Sprintf("/org/freedesktop/systemd1/job/%d", number))
	m.pending.Go(func() {
		m.jobs.Lock()
		defer m.jobs.Unlock()
		result := "done"
		if err := unit.do(do); err != nil {
			result = "failed"
		}
		_ = m.conn.Emit("/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager.JobRemoved", number, path, name, result)
	})
	return path, nil
}

// missing notes what a test of ours has to learn.
func (m *machine) missing(what string) *dbus.Error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.odd = append(m.odd, what)
	return dbus.NewError("org.freedesktop.DBus.Error.UnknownProperty", []any{what})
}

// takeOdd returns what was asked for in vain since the last call.
func (m *machine) takeOdd() []string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	odd := m.odd
	m.odd = nil
	return odd
}

// bus is org.freedesktop.systemd1.Manager.
type bus struct{ *machine }

func (b bus) RestartUnit(name, _ string) (dbus.ObjectPath, *dbus.Error) {
	return b.queue(name, (*unit).restart)
}

func (b bus) ReloadOrRestartUnit(name, _ string) (dbus.ObjectPath, *dbus.Error) {
	return b.queue(name, (*unit).reloadOrRestart)
}

func (b bus) ResetFailedUnit(string) *dbus.Error { return nil }

func (b bus) KillUnit(name, who string, signal int32) *dbus.Error {
	unit := b.units[name]
	if unit == nil || who != "main" {
		return b.missing(fmt.Sprintf("KillUnit %s %s", name, who))
	}
	if err := unit.signal(syscall.Signal(signal)); err != nil {
		return dbus.MakeFailedError(err)
	}
	return nil
}

// busUnit is org.freedesktop.DBus.Properties of one unit.
type busUnit struct {
	machine *machine
	unit    *unit
}

func (b busUnit) Get(_, name string) (dbus.Variant, *dbus.Error) {
	u := b.unit
	u.mutex.Lock()
	defer u.mutex.Unlock()
	var pid uint32
	var started uint64
	if u.aliveLocked() {
		pid, started = uint32(u.process.Process.Pid), uint64(u.started.UnixMicro())
	}
	switch name {
	case "ActiveState":
		return dbus.MakeVariant(u.stateLocked()), nil
	case "LoadState":
		return dbus.MakeVariant("loaded"), nil
	case "MainPID":
		return dbus.MakeVariant(pid), nil
	case "ExecMainStartTimestamp":
		return dbus.MakeVariant(started), nil
	case "NRestarts":
		return dbus.MakeVariant(uint32(0)), nil // Debian's units have no Restart=
	case "Result":
		return dbus.MakeVariant(u.result), nil
	}
	return dbus.Variant{}, b.machine.missing("property " + name)
}

var errRefused = errors.New("the job is to fail")

// do does a job, unless it is to fail.
func (u *unit) do(job func(*unit) error) error {
	u.mutex.Lock()
	refuse, before := u.refuse, u.before
	u.mutex.Unlock()
	if before != nil {
		before()
	}
	err := errRefused
	if !refuse {
		err = job(u)
	}
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.result = "success"
	if err != nil {
		u.result = "exit-code"
	}
	return err
}

func (u *unit) reloadOrRestart() error {
	if u.alive() && len(u.reload) > 0 {
		loaded := u.note("reload")
		err := run(u.reload[0], u.reload[1:]...)
		u.took(loaded, err)
		return err
	}
	return u.restart()
}

// restart returns when the program is ready, or has ended.
func (u *unit) restart() error {
	u.stop(syscall.SIGTERM)
	if err := run(u.check[0], u.check[1:]...); err != nil {
		return err
	}
	_ = os.Remove(u.pid)
	loaded := u.note("start")
	process := exec.Command(u.start[0], u.start[1:]...)
	process.Stderr = u.log.writer
	process.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // its session is its control group
	ended := make(chan struct{})
	started := time.Now()
	if err := process.Start(); err != nil {
		return err
	}
	u.mutex.Lock()
	u.process, u.ended, u.started, u.up = process, ended, started, false
	u.starts++
	u.mutex.Unlock()
	go func() {
		_ = process.Wait()
		endSession(process.Process.Pid) // KillMode=mixed
		close(ended)
	}()
	err := u.ready(process.Process.Pid, ended)
	u.set(func(u *unit) { u.up = err == nil })
	u.took(loaded, err)
	return err
}

// ready waits until the program has written its PID file.
func (u *unit) ready(pid int, ended chan struct{}) error {
	for {
		content, _ := os.ReadFile(u.pid)
		if strings.TrimSpace(string(content)) == strconv.Itoa(pid) {
			return nil
		}
		select {
		case <-ended:
			return errors.New("it has ended")
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// note keeps what the program is about to load, and returns it.
func (u *unit) note(how string) load {
	content, err := os.ReadFile(u.conf)
	loaded := load{how: how, digest: digest(content)}
	if err != nil {
		loaded.digest = err.Error()
	}
	if shown := shownRevision.FindSubmatch(content); shown != nil {
		loaded.revision = string(shown[1])
	}
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.loads = append(u.loads, loaded)
	return loaded
}

// took keeps what the program has loaded.
func (u *unit) took(loaded load, err error) {
	if err == nil {
		u.set(func(u *unit) { u.running = loaded })
	}
}

// runs returns what the program has loaded.
func (u *unit) runs() load {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	return u.running
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func (u *unit) signal(signal syscall.Signal) error {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if !u.aliveLocked() {
		return errors.New("it does not run")
	}
	return u.process.Process.Signal(signal)
}

// stop ends the program and all that belongs to it.
func (u *unit) stop(signal syscall.Signal) {
	u.mutex.Lock()
	process, ended := u.process, u.ended
	u.up = false
	u.mutex.Unlock()
	if process != nil {
		_ = process.Process.Signal(signal)
		<-ended
	}
}

// kill ends the program as a fault does.
func (u *unit) kill() {
	u.stop(syscall.SIGKILL)
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.result = "signal"
}

func (u *unit) alive() bool {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	return u.aliveLocked()
}

func (u *unit) aliveLocked() bool {
	if !u.up {
		return false
	}
	select {
	case <-u.ended:
		return false
	default:
		return true
	}
}

func (u *unit) state() string {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	return u.stateLocked()
}

func (u *unit) stateLocked() string {
	if u.aliveLocked() {
		return "active"
	}
	return "failed"
}

// epoch counts the starts: connections do not outlive one.
func (u *unit) epoch() int {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	return u.starts
}

// loaded returns what the program was made to load since the last call.
func (u *unit) loaded() []load {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	loads := u.loads
	u.loads = nil
	return loads
}

// set changes what happens to jobs.
func (u *unit) set(change func(*unit)) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	change(u)
}

// idle reports whether the master process of nginx has no reload to do: it
// blocks SIGHUP but while it waits for one (sigsuspend(2)), and none is pending.
func (u *unit) idle() bool {
	u.mutex.Lock()
	pid := u.process.Process.Pid
	u.mutex.Unlock()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(status)) {
		switch name, value, _ := strings.Cut(line, ":"); name {
		case "SigPnd", "ShdPnd", "SigBlk": // proc_pid_status(5)
			mask, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			if err != nil || mask&(1<<(syscall.SIGHUP-1)) != 0 {
				return false
			}
		}
	}
	return true
}

// endSession kills what is left of a session and waits until it is gone.
func endSession(session int) {
	for {
		left := false
		for _, pid := range sessionOf(session) {
			left = true
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if !left {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// sessionOf returns the processes of a session that have not ended.
func sessionOf(session int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var pids []int
	for _, stat := range stats {
		content, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended
		}
		// proc_pid_stat(5): pid (comm) state ppid pgrp session
		before, after, _ := strings.Cut(string(content), ") ")
		fields := strings.Fields(after)
		pid, err := strconv.Atoi(strings.Fields(before)[0])
		if err == nil && len(fields) > 3 && fields[0] != "Z" && fields[3] == strconv.Itoa(session) {
			pids = append(pids, pid)
		}
	}
	return pids
}
