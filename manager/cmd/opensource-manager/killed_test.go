package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

// runThis makes the test binary the program: a process that a test can kill.
const runThis = "MANAGER_TEST_RUN"

func TestMain(m *testing.M) {
	if os.Getenv(runThis) != "" {
		os.Exit(run(os.Args[1:], environment(os.Environ()), os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// program is a command line of the program as a process of its own.
func (s *shell) program(args ...string) *exec.Cmd {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	command := exec.CommandContext(s.t.Context(), self, args...)
	command.Env = append(os.Environ(), runThis+"=1")
	for name, value := range s.env {
		command.Env = append(command.Env, name+"="+value)
	}
	command.Stderr = &bytes.Buffer{}
	return command
}

// answered is what clients were told is done.
type answered struct {
	mu         sync.Mutex
	containers map[string]bool
	reports    map[string]string // the last message of each host name
}

func (a *answered) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.containers)
}

// TestKilledManagerLosesNothing kills a manager under load, again and again, at
// any moment. Every write that was answered with success is there afterwards.
// (What a power cut loses beyond that is up to synchronous=FULL and the disk.)
func TestKilledManagerLosesNothing(t *testing.T) {
	s := newShell(t)
	opened := s.store()
	site, err := opened.CreateSite(t.Context(), inventory.Site{Name: "lab"})
	if err != nil {
		t.Fatal(err)
	}
	node, err := opened.CreateNode(t.Context(), site.ID, inventory.Node{Name: "pve1", Type: "proxmox"})
	if err != nil {
		t.Fatal(err)
	}
	opened.Close()
	key := s.must("", "apikey", "create", "--role", "admin")
	told := &answered{containers: map[string]bool{}, reports: map[string]string{}}
	for round := range 12 {
		address := freePort(t)
		server := s.program("serve", "--listen", address)
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		load := &load{t: t, url: "http://" + address + "/api/v1", key: key[:len(key)-1], site: site.ID, node: node.ID, round: round, told: told}
		load.awaitReady(server)
		load.run(func() { _ = server.Process.Signal(syscall.SIGKILL) })
		_ = server.Wait()
	}
	if told.count() < 50 {
		t.Fatalf("only %d writes were answered", told.count())
	}
	told.verify(t, s.store(), site.ID)
}

func (a *answered) verify(t *testing.T, s *store.Store, site int64) {
	containers, _, err := s.ListContainers(t.Context(), store.ContainerFilter{SiteID: site}, store.ListOptions{Limit: store.All})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range containers {
		delete(a.containers, c.Hostname)
	}
	if len(a.containers) > 0 {
		t.Errorf("%d containers that were answered are lost: %v", len(a.containers), a.containers)
	}
	for host, message := range a.reports {
		agent, err := s.FindAgent(t.Context(), site, host)
		if err != nil {
			t.Errorf("agent %s: %v", host, err)
			continue
		}
		// One that was stored, and not answered any more, may have come after it.
		if got := agent.Report.Services["nginx"].Message; got < message {
			t.Errorf("the last report of %s is %q, %q was answered", host, got, message)
		}
	}
}

// load writes through the API until the manager does not answer any more.
type load struct {
	t          *testing.T
	url, key   string
	site, node int64
	round      int
	told       *answered
}

func (l *load) awaitReady(server *exec.Cmd) {
	l.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		answer, err := http.Get(l.url + "/health")
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(end) {
			_ = server.Process.Kill()
			_ = server.Wait()
			l.t.Fatalf("the manager does not start: %v\n%s", err, server.Stderr)
		}
	}
}

// run kills after a number of answers that is another one each time.
func (l *load) run(kill func()) {
	var left atomic.Int64
	left.Store(5 + rand.Int64N(40))
	done := func() {
		if left.Add(-1) == 0 {
			kill()
		}
	}
	var clients sync.WaitGroup
	for client := range 4 {
		clients.Go(func() {
			for n := 0; ; n++ {
				hostname := fmt.Sprintf("r%d-c%d-%d", l.round, client, n)
				if l.post(fmt.Sprintf("/sites/%d/containers", l.site), map[string]any{"nodeId": l.node, "hostname": hostname}) != nil {
					return
				}
				l.told.note(func(a *answered) { a.containers[hostname] = true })
				done()
			}
		})
		clients.Go(func() {
			host := fmt.Sprintf("agent-%d", client)
			for n := 0; ; n++ {
				message := fmt.Sprintf("%04d-%06d", l.round, n)
				report := checkin.Request{SiteID: l.site, Hostname: host, Services: map[string]checkin.ServiceReport{"nginx": {State: "active", Message: message}}}
				if l.post("/agents", report) != nil {
					return
				}
				l.told.note(func(a *answered) { a.reports[host] = message })
				done()
			}
		})
	}
	clients.Wait()
}

func (a *answered) note(what func(*answered)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	what(a)
}

// post returns an error when nobody answers any more. Any other answer than
// success fails the test.
func (l *load) post(path string, body any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(context.Background(), "POST", l.url+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	request.Header.Set("X-Api-Key", l.key)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body) // the status has come: whatever it says is true
	if answer.StatusCode/100 != 2 {
		l.t.Errorf("%s: %d %s", path, answer.StatusCode, text)
		return fmt.Errorf("status %d", answer.StatusCode)
	}
	return nil
}
