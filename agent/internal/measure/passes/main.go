// Command passes measures passes of the agent as whole processes. An unchanged
// pass is measured side by side with a program that only sends one POST, and
// with an empty Node.js program if that is installed; with -apply, a first pass
// that puts everything into force is measured instead.
//
// It imports little on purpose: the peak memory of a process is never less than
// that of the one that started it (getrusage(2), ru_maxrss).
//
// With -live the agent does not run in a folder, but on this host, whose nginx,
// dnsmasq and systemd it then uses: for machines made for it.
//
// usage: passes -agent FILE -minimal FILE -bare FILE -root DIR [-services N] [-small N] [-runs N] [-live] [-tls | -apply]
package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	var s setup
	flag.StringVar(&s.agent, "agent", "", "the agent's `FILE`")
	flag.StringVar(&s.minimal, "minimal", "", "the `FILE` of the program that sends one POST")
	flag.StringVar(&s.bare, "bare", "", "the `FILE` of the server that answers 304")
	flag.StringVar(&s.root, "root", "", "an empty `DIR`, with mnt/volumes a mount point")
	flag.IntVar(&s.services, "services", 100, "HTTP services of the site")
	flag.IntVar(&s.small, "small", 0, "compare with a site of so many HTTP services, in the folder small below -root")
	flag.IntVar(&s.runs, "runs", 41, "runs of each program")
	flag.BoolVar(&s.tls, "tls", false, "check in over TLS")
	flag.BoolVar(&s.live, "live", false, "work on this host instead of below -root")
	flag.BoolVar(&s.apply, "apply", false, "measure passes that apply everything")
	flag.Parse()
	if err := s.run(); err != nil {
		fmt.Fprintln(os.Stderr, "passes:", err)
		os.Exit(1)
	}
}

type setup struct {
	agent, minimal, bare, root string
	services, small, runs      int
	tls, apply, live           bool
}

// program is one of those that are compared.
type program struct {
	name    string
	command func() *exec.Cmd
	costs   []cost
}

// cost is what one run took (getrusage(2)).
type cost struct {
	wall, cpu time.Duration
	peak      int64 // KiB
}

func (s *setup) run() error {
	if s.apply && s.live {
		return errors.New("-apply needs a folder: leave out -live")
	}
	site, stop, err := s.prepare()
	if err != nil {
		return err
	}
	defer stop()
	switch {
	case s.apply:
		return s.measureApply(site.pass)
	case s.small > 0:
		return s.measureSizes(site)
	}
	return s.measureUnchanged(site)
}

// measured is a site to measure passes for.
type measured struct {
	pass      func() *exec.Cmd
	url, etag string // for a check-in
}

// prepare makes a site, with a manager of its own.
func (s *setup) prepare() (measured, func(), error) {
	// A first pass is measured by removing what an earlier one wrote.
	if made, err := os.Stat(filepath.Join(s.root, "mnt/volumes")); s.root == "" || s.root == "/" || err != nil || !made.IsDir() {
		return measured{}, nil, fmt.Errorf("-root %q: give a folder of its own, with mnt/volumes in it", s.root)
	}
	snapshot := site(s.services)
	file := filepath.Join(s.root, "answer.json")
	if err := os.WriteFile(file, snapshot, 0o600); err != nil {
		return measured{}, nil, err
	}
	url, stop, err := s.serve(file)
	if err != nil {
		return measured{}, nil, err
	}
	pass := func() *exec.Cmd {
		command := exec.Command(s.agent)
		if !s.live {
			command.Args = append(command.Args, "--root", s.root)
		}
		command.Env = []string{"PATH=" + os.Getenv("PATH"), "SITE_ID=1", "MANAGER_URL=" + url, "API_KEY=measured", "AGENT_HOSTNAME=agent", s.trust()}
		return command
	}
	return measured{pass, url + "/api/v1/agents", fmt.Sprintf(`"%x"`, sha256.Sum256(snapshot))}, stop, nil
}

// measureSizes compares unchanged passes for a large and a small site.
func (s *setup) measureSizes(large measured) error {
	other := *s
	other.root, other.services = filepath.Join(s.root, "small"), s.small
	small, stop, err := other.prepare()
	if err != nil {
		return err
	}
	defer stop()
	programs := []*program{
		{name: fmt.Sprintf("%d HTTP services", s.services), command: large.pass},
		{name: fmt.Sprintf("%d HTTP services", s.small), command: small.pass},
	}
	for _, p := range programs {
		if err := settle(p.command); err != nil {
			return err
		}
	}
	if err := alternate(programs, s.runs); err != nil {
		return err
	}
	report(programs)
	ratios("large / small", programs[0], programs[1])
	return nil
}

// measureUnchanged compares passes in which there is nothing to do.
func (s *setup) measureUnchanged(site measured) error {
	if err := settle(site.pass); err != nil {
		return err
	}
	agent := &program{name: "agent, unchanged pass", command: site.pass}
	minimal := &program{name: "minimal Go program", command: func() *exec.Cmd {
		command := exec.Command(s.minimal, site.url, site.etag)
		command.Stdin = strings.NewReader(body)
		command.Env = []string{s.trust()}
		return command
	}}
	programs := []*program{agent, minimal}
	if node, err := exec.LookPath("node"); err == nil {
		programs = append(programs, &program{name: "node -e 0", command: func() *exec.Cmd { return exec.Command(node, "-e", "0") }})
	}
	if err := alternate(programs, s.runs); err != nil {
		return err
	}
	report(programs)
	ratios("agent / minimal", agent, minimal)
	return nil
}

// ratios prints how two programs compare. The machine may be busy with other
// things: a ratio is that of two runs that followed each other.
func ratios(name string, a, b *program) {
	ratio := func(of func(cost) float64) float64 {
		return median(len(a.costs), func(i int) float64 { return of(a.costs[i]) / of(b.costs[i]) })
	}
	fmt.Printf("%-24s %8.2f x %8.2f x %8.2f x\n", name, ratio(wall), ratio(cpu), ratio(peak))
}

// measureApply measures first passes, and nginx's own test of what they made.
// The cost of a process includes that of those it started.
func (s *setup) measureApply(pass func() *exec.Cmd) error {
	conf := filepath.Join(s.root, "etc/nginx/nginx.conf")
	programs := []*program{
		{name: "agent, first pass", command: func() *exec.Cmd {
			for _, written := range []string{"etc", "var", "run"} {
				_ = os.RemoveAll(filepath.Join(s.root, written)) // the first run finds nothing
			}
			return pass()
		}},
		{name: "nginx -t alone", command: func() *exec.Cmd { return exec.Command("nginx", "-t", "-q", "-c", conf) }},
	}
	if err := alternate(programs, s.runs); err != nil {
		return err
	}
	report(programs)
	return nil
}

// serve starts the server and returns its URL.
func (s *setup) serve(answer string) (url string, stop func(), err error) {
	server := exec.Command(s.bare, answer)
	if s.tls {
		server = exec.Command(s.bare, "-tls", s.certificate(), answer)
	}
	server.Stderr = os.Stderr
	in, err := server.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := server.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := server.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		in.Close()
		_ = server.Wait()
	}
	url, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("start the server: %w", err)
	}
	if err := s.writeBundle(); err != nil {
		stop()
		return "", nil, err
	}
	return strings.TrimSpace(url), stop, nil
}

func (s *setup) certificate() string { return filepath.Join(s.root, "server.pem") }
func (s *setup) bundle() string      { return filepath.Join(s.root, "authorities.pem") }

// trust is the variable by which Go programs find the certificate authorities
// (crypto/x509, SystemCertPool).
func (s *setup) trust() string { return "SSL_CERT_FILE=" + s.bundle() }

// writeBundle adds the server to the authorities that a host has, which every
// process has to read before its first connection.
func (s *setup) writeBundle() error {
	if !s.tls {
		return nil
	}
	own, err := os.ReadFile(s.certificate())
	if err != nil {
		return err
	}
	hosts, err := os.ReadFile("/etc/ssl/certs/ca-certificates.crt")
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.WriteFile(s.bundle(), append(hosts, own...), 0o600)
}

// settle does the passes that have something to do. A cached fact about a file
// is trusted only once the file is two seconds old.
func settle(pass func() *exec.Cmd) error {
	for range 2 {
		first := pass()
		var words bytes.Buffer
		first.Stderr = &words
		if err := first.Run(); err != nil {
			return fmt.Errorf("a pass before measuring: %w\n%s", err, &words)
		}
		time.Sleep(2500 * time.Millisecond)
	}
	quiet := pass()
	if words, err := quiet.CombinedOutput(); err != nil || len(words) > 0 {
		return fmt.Errorf("a pass that should be unchanged: %v\n%s", err, words)
	}
	return nil
}

// alternate runs every program in turn.
func alternate(programs []*program, runs int) error {
	for range runs {
		for _, p := range programs {
			took, err := measure(p.command())
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			p.costs = append(p.costs, took)
		}
	}
	return nil
}

func measure(command *exec.Cmd) (cost, error) {
	start := time.Now()
	if err := command.Run(); err != nil {
		return cost{}, err
	}
	wall := time.Since(start)
	usage := command.ProcessState.SysUsage().(*syscall.Rusage)
	return cost{wall: wall, cpu: command.ProcessState.UserTime() + command.ProcessState.SystemTime(), peak: usage.Maxrss}, nil
}

func wall(c cost) float64 { return c.wall.Seconds() * 1000 }
func cpu(c cost) float64  { return c.cpu.Seconds() * 1000 }
func peak(c cost) float64 { return float64(c.peak) / 1024 }

func report(programs []*program) {
	fmt.Printf("%-24s %10s %10s %10s   medians of %d runs in alternation\n", "", "wall", "CPU", "peak RSS", len(programs[0].costs))
	for _, p := range programs {
		fmt.Printf("%-24s %7.1f ms %7.1f ms %6.1f MiB\n", p.name, p.median(wall), p.median(cpu), p.median(peak))
	}
}

func (p *program) median(of func(cost) float64) float64 {
	return median(len(p.costs), func(i int) float64 { return of(p.costs[i]) })
}

func median(n int, value func(i int) float64) float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = value(i)
	}
	slices.Sort(values)
	return values[n/2]
}
