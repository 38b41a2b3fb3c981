package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

// passwordSource is where a new password comes from. Never the command line:
// everybody on the host can read that.
type passwordSource struct {
	Generate bool `help:"Make a password and print it instead of asking for one."`
}

// print shows what was done; a generated password is alone on stdout.
func (p passwordSource) print(e *environmentOf, row store.User, password string, asJSON bool, done string) error {
	shown := userWithPassword{User: show.UserOf(row)}
	if p.Generate {
		shown.Password = password
	}
	var err error
	switch {
	case asJSON:
		err = e.printJSON(shown)
	case p.Generate:
		_, err = fmt.Fprintln(e.stdout, password)
	default:
		_, err = fmt.Fprintln(e.stdout, done)
	}
	return err
}

// userWithPassword is a user and a password that was generated.
type userWithPassword struct {
	show.User
	Password string `json:"password,omitempty"`
}

// read generates a password, asks a person for it twice, or takes the first
// line of stdin.
func (p passwordSource) read(e *environmentOf) (string, error) {
	if p.Generate {
		return auth.GeneratePassword(), nil
	}
	if terminal, ok := e.stdin.(*os.File); ok && isTerminal(terminal) {
		return ask(e, terminal)
	}
	line, err := bufio.NewReader(io.LimitReader(e.stdin, 4<<10)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read password from stdin: %w", err)
	}
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", usageError{errors.New("no password on stdin: give one line, or use --generate")}
	}
	return line, nil
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// ask reads a password twice from a terminal that does not show it.
func ask(e *environmentOf, terminal *os.File) (string, error) {
	restore, err := hideInput(terminal)
	if err != nil {
		return "", err
	}
	defer restore()
	lines := bufio.NewReader(terminal)
	first, err := prompt(e, lines, "Password: ")
	if err != nil {
		return "", err
	}
	second, err := prompt(e, lines, "Again: ")
	if err != nil {
		return "", err
	}
	if first != second {
		return "", usageError{errors.New("the two passwords differ")}
	}
	return first, nil
}

// prompt asks one question. Reading a terminal cannot be cancelled, so an
// interrupt leaves the read behind: the program is about to end.
func prompt(e *environmentOf, lines *bufio.Reader, question string) (string, error) {
	fmt.Fprint(e.stderr, question)
	defer fmt.Fprintln(e.stderr)
	type result struct {
		line string
		err  error
	}
	read := make(chan result, 1)
	go func() {
		line, err := lines.ReadString('\n')
		read <- result{line, err}
	}()
	select {
	case r := <-read:
		if r.err != nil {
			return "", fmt.Errorf("read password: %w", r.err)
		}
		return strings.TrimRight(r.line, "\r\n"), nil
	case <-e.Done():
		return "", fmt.Errorf("read password: %w", e.Err())
	}
}

// hideInput turns a terminal's echo off (termios(3)).
func hideInput(terminal *os.File) (restore func(), err error) {
	fd := int(terminal.Fd())
	before, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("look at the terminal: %w", err)
	}
	hidden := *before
	hidden.Lflag &^= unix.ECHO
	hidden.Lflag |= unix.ICANON | unix.ISIG
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &hidden); err != nil {
		return nil, fmt.Errorf("hide what is typed: %w", err)
	}
	return func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, before) }, nil
}
