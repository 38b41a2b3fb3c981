package soak

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"pgregory.net/rapid"

	"opensource.internal/agent/checkin"
)

// passLimit is how long a pass may take: its own limit and a rollback at its
// end.
const passLimit = 45 * time.Second

// session is one sequence.
type session struct {
	*world
	t          rapid.TB
	transcript strings.Builder
	started    time.Time

	site  *site
	etag  string          // of the snapshot that is published
	names map[string]bool // all host names so far
	ports map[socket]bool // all ports so far
	hosts map[string]bool // all internal names so far
	srv   map[string]bool
	once  map[string]map[backend]bool // what was behind a host name or port so far

	pairs   map[string]checkin.CertificateState // of certificate and key, by domain
	taken   map[socket]func()                   // ports that another process has, and how it gives them back
	inForce map[string]force                    // by service, as it was reported last
	before  map[string]force                    // the same ahead of the pass
	whole   string                              // the tag last reported to run as a whole
	meant   string                              // the tag that is meant to be in force, not one that is held back; empty if not known
	// remains are candidates of a pass that was killed: loaded by nothing, and
	// cleared away when the service is applied next.
	remains map[string]bool
	// unsettled is true if nginx may still be busy with a configuration that was
	// taken back: it finishes one reload before it begins the next.
	unsettled bool
	held      map[string]bool // services that are held
	// cutShort are the services at which a pass was killed, and that none could
	// look after since: such a one is left as it is while it is held.
	cutShort map[string]bool
	// disturbed are the services whose files or jobs met with something that
	// the agent cannot see through: one restart too many is no fault then.
	disturbed map[string]bool
	line      *line
	question  *questions
}

// force is what was reported to be in force.
type force struct {
	etag string
	left []checkin.QuarantinedItem
}

// begin starts a sequence, in a world made anew, with a pass that goes well.
func (w *world) begin(t rapid.TB) *session {
	s := &session{
		world: w, t: t, started: time.Now(), site: firstSite(), names: map[string]bool{}, ports: map[socket]bool{},
		hosts: map[string]bool{}, srv: map[string]bool{}, once: map[string]map[backend]bool{},
		pairs: map[string]checkin.CertificateState{}, taken: map[socket]func(){}, inForce: map[string]force{}, disturbed: map[string]bool{}, held: map[string]bool{}, cutShort: map[string]bool{}, remains: map[string]bool{},
	}
	must(t, w.reset(), putOverrides())
	for _, domain := range domains {
		s.pairs[domain] = checkin.CertificateMissing
	}
	s.publish()
	s.pass(byHand)
	s.question = ask(w.machine.dnsmasq())
	return s
}

func (s *session) end() {
	if s.line != nil {
		s.line.conn.Close()
	}
	if s.question != nil {
		s.question.stop()
	}
	s.heal()
}

// say adds a line to the transcript.
func (s *session) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(&s.transcript, "%7.3f  %s\n", time.Since(s.started).Seconds(), text)
	if _, random := s.t.(*rapid.T); random {
		s.t.Log(text)
	}
}

// wrong says what must not be; the sequence ends after the step.
func (s *session) wrong(format string, args ...any) {
	s.t.Helper()
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(&s.transcript, "%7.3f  WRONG: %s\n", time.Since(s.started).Seconds(), text)
	s.t.Error(text)
}

// publish gives the manager the site as it is now.
func (s *session) publish() {
	snapshot := s.site.snapshot()
	etag, err := s.manager.publish(snapshot)
	must(s.t, err)
	s.etag = etag
	s.say("published %s: %d host names, %d ports, %d containers, network %d, odd %v", shortTag(etag),
		len(snapshot.NGINX.HTTPServices), len(snapshot.NGINX.StreamServices), len(snapshot.Site.Nodes[0].Containers), s.site.network, s.site.odd)
	m := meaning(snapshot, nil)
	for name, behind := range m.http {
		s.names[name] = true
		s.behind(name, behind)
	}
	for name, behind := range m.streams {
		s.ports[name] = true
		s.behind(name, behind)
	}
	for name := range m.hosts {
		s.hosts[name] = true
	}
	for name := range m.srv {
		s.srv[name] = true
	}
}

func (s *session) behind(name string, behind backend) {
	if s.once[name] == nil {
		s.once[name] = map[backend]bool{}
	}
	s.once[name][behind] = true
}

func shortTag(etag string) string {
	etag = strings.Trim(etag, `"`)
	return etag[:min(8, len(etag))]
}

// The ways a pass is started.
type start string

const (
	byHand  start = "by hand"
	byTimer start = "by the timer"
)

// result is how a pass ended.
type result struct {
	code   int
	killed bool
	told   []checkin.Request // check-ins that were answered well
	log    string
}

// pass runs the agent to its end and checks all that must hold then.
func (s *session) pass(how start) result { return s.passKilled(how, "") }

// passKilled has the agent killed at a moment, which may not come.
func (s *session) passKilled(how start, moment string) result {
	before := s.restarts()
	mains := s.mains()
	r := s.runAgent(how, moment)
	s.say("pass %s: exit %d%s", how, r.code, map[bool]string{true: ", killed"}[r.killed])
	s.check(r, before, mains)
	return r
}

// runAgent starts the agent and waits for it, and for what it has set off.
func (s *session) runAgent(how start, moment string) result {
	s.before = maps.Clone(s.inForce)
	command, log := s.agent("run", "--log-level", "debug")
	if how == byTimer {
		// As systemd.exec(5) has it.
		command.Path, command.Args = "/bin/sh", append([]string{"sh", "-c", `SYSTEMD_EXEC_PID=$$; export SYSTEMD_EXEC_PID; exec "$0" "$@"`}, command.Args...)
	}
	must(s.t, command.Start())
	disarm := s.arm(moment, func() { _ = command.Process.Kill() })
	tooLong := time.AfterFunc(passLimit, func() { _ = command.Process.Signal(syscall.SIGQUIT) })
	err := command.Wait()
	if !tooLong.Stop() {
		s.wrong("the pass took longer than %s", passLimit)
	}
	disarm()
	s.machine.pending.Wait() // what systemd was asked for goes on after a kill

	r := result{told: s.manager.takeTold(), log: log.String()}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		r.code = exit.ExitCode()
		status := exit.Sys().(syscall.WaitStatus)
		r.killed = status.Signaled() && status.Signal() == syscall.SIGKILL
	} else if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(r.log) {
		s.say("  | %s", strings.TrimRight(line, "\n"))
	}
	return r
}

// agent is the agent's program with arguments, and what it will have written.
func (s *session) agent(args ...string) (*exec.Cmd, *bytes.Buffer) {
	s.manager.takeTold()
	command := exec.Command(os.Getenv(agentVariable), args...)
	var log bytes.Buffer
	command.Stdout, command.Stderr = &log, &log
	command.Env = []string{
		"PATH=" + toolsDir + ":/usr/sbin:/usr/bin:/sbin:/bin", "DBUS_SYSTEM_BUS_ADDRESS=" + s.machine.address,
		"SITE_ID=1", "MANAGER_URL=http://" + managerAddress, "AGENT_HOSTNAME=soak", "STATE_DIRECTORY=" + stateDir,
	}
	command.WaitDelay = time.Second
	return command, &log
}

// moments are when an agent can be killed, besides those that are a number of
// milliseconds after its start.
var moments = []string{"asking", "testing nginx", "testing dnsmasq", "loading nginx", "loading dnsmasq"}

// arm has kill called at the moment; the result calls that off.
func (s *session) arm(moment string, kill func()) (disarm func()) {
	units := map[string]*unit{"loading nginx": s.machine.nginx(), "loading dnsmasq": s.machine.dnsmasq()}
	flags := map[string]string{"testing nginx": scratch + "/nginx.kill", "testing dnsmasq": scratch + "/dnsmasq.kill"}
	var once sync.Once
	switch {
	case moment == "":
		return func() {}
	case moment == "asking":
		s.manager.set(func(m *manager) { m.before = kill })
		return func() { s.manager.set(func(m *manager) { m.before = nil }) }
	case units[moment] != nil:
		u := units[moment]
		u.set(func(u *unit) { u.before = func() { once.Do(kill) } })
		return func() { u.set(func(u *unit) { u.before = nil }) }
	case flags[moment] != "":
		must(s.t, os.WriteFile(flags[moment], nil, 0o644))
		return func() { _ = os.Remove(flags[moment]) }
	}
	after, err := time.ParseDuration(moment)
	must(s.t, err)
	timer := time.AfterFunc(after, kill)
	return func() { timer.Stop() }
}

// heal takes away all faults there are.
func (s *session) heal() {
	heal()
	for _, u := range s.machine.units {
		u.set(func(u *unit) { u.refuse = false })
	}
	for name, giveBack := range s.taken {
		giveBack()
		delete(s.taken, name)
	}
	s.manager.set(func(m *manager) { m.fault = "" })
}

// forget drops what an agent that does not know it either cannot be held to.
func (s *session) forget() {
	clear(s.inForce)
	s.whole, s.meant = "", ""
	s.disturbed["nginx"], s.disturbed["dnsmasq"] = true, true
}

// restarts returns how often each program was started.
func (s *session) restarts() map[string]int {
	starts := map[string]int{}
	for name, unit := range s.machine.units {
		starts[serviceOf(name)] = unit.epoch()
	}
	return starts
}

// mains returns, of each program that runs, the main file it has loaded.
func (s *session) mains() map[string]string {
	mains := map[string]string{}
	for name, unit := range s.machine.units {
		if unit.alive() {
			mains[serviceOf(name)] = unit.runs().digest
		}
	}
	return mains
}

func serviceOf(unit string) string { return strings.TrimSuffix(unit, ".service") }
