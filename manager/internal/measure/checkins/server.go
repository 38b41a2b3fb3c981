package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// server is a process that answers check-ins.
type server struct {
	url     string
	process *exec.Cmd
	in      io.Closer
}

func (s *server) pid() int { return s.process.Process.Pid }

func (s *server) stop() {
	if s.in != nil {
		s.in.Close()
	}
	_ = s.process.Process.Signal(syscall.SIGTERM)
	_ = s.process.Wait()
}

// startBare starts the server that only decodes; it prints where it listens.
func startBare(file string) (*server, error) {
	s := &server{process: exec.Command(file)}
	in, err := s.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	s.in = in
	out, err := s.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.process.Stderr = os.Stderr
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("start %s: %w", file, err)
	}
	s.url = strings.TrimSpace(line)
	return s, nil
}

// installation is the manager's program and where it keeps its records.
type installation struct {
	file string
	dir  string
	url  string // of the PostgreSQL database; SQLite in dir if empty
}

// command runs the manager with nothing of this process's environment.
func (i installation) command(arguments ...string) *exec.Cmd {
	command := exec.Command(i.file, arguments...)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "STATE_DIRECTORY=" + i.dir, "LOOPBACK_SITE=off"}
	if i.url != "" {
		command.Env = append(command.Env, "DATABASE_URL="+i.url)
	}
	command.Stderr = os.Stderr
	return command
}

// start starts the manager on a free port, and waits until it is ready.
func (i installation) start() (*server, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s := &server{url: "http://" + address, process: i.command("serve")}
	s.process.Env = append(s.process.Env, "LISTEN="+address, "PUBLIC_URL="+s.url)
	s.process.Stderr = nil
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	for range 100 {
		answer, err := http.Get(s.url + "/api/v1/health")
		if err == nil {
			answer.Body.Close()
		}
		if err == nil && answer.StatusCode == http.StatusOK {
			return s, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.stop()
	return nil, errors.New("the manager does not answer")
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}
