package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/store"
)

type userCommands struct {
	Create userCreate `cmd:"" help:"Create a user."`
	Passwd userPasswd `cmd:"" help:"Set a user's password and end all their sessions."`

	List    userList    `cmd:"" help:"List the users."`
	Role    userRole    `cmd:"" help:"Give a user another role; it holds from their next request on."`
	Disable userDisable `cmd:"" help:"Let a user sign in no more, and end all their sessions."`
	Enable  userEnable  `cmd:"" help:"Let a disabled user sign in again."`
	Delete  userDelete  `cmd:"" help:"Delete a user."`
}

// passwordSource is where a new password comes from. Never the command line:
// everybody on the host can read that.
type passwordSource struct {
	Generate bool `help:"Make a password and print it instead of asking for one."`
}

// user is a user as they are printed.
type user struct {
	ID        int64     `json:"id,omitempty"`
	Name      string    `json:"name"`
	Role      string    `json:"role,omitempty"`
	CreatedAt time.Time `json:"createdAt,omitzero"`
	Password  string    `json:"password,omitempty"` // only a generated one
}

type userCreate struct {
	Name string `arg:"" help:"Name to sign in with."`
	Role string `enum:"admin,viewer" default:"admin" help:"admin or viewer (default admin)."`
	JSON bool   `name:"json" help:"Print JSON."`
	passwordSource
}

// Run creates a user.
func (c userCreate) Run(e *environmentOf) error {
	password, err := c.read(e)
	if err != nil {
		return err
	}
	return e.withNewStore(func(s *store.Store) error {
		row, err := auth.CreateUser(e, s, c.Name, auth.Role(c.Role), password)
		if err != nil {
			return err
		}
		shown := user{ID: row.ID, Name: row.Name, Role: row.Role, CreatedAt: row.CreatedAt}
		return c.print(e, shown, password, c.JSON, fmt.Sprintf("created user %s (%s)", row.Name, row.Role))
	})
}

type userPasswd struct {
	Name string `arg:"" help:"Name of the user."`
	JSON bool   `name:"json" help:"Print JSON."`
	passwordSource
}

// Run sets a password.
func (c userPasswd) Run(e *environmentOf) error {
	password, err := c.read(e)
	if err != nil {
		return err
	}
	return e.withStore(func(s *store.Store) error {
		err := auth.SetPassword(e, s, c.Name, password)
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("there is no user %q", c.Name)
		}
		if err != nil {
			return err
		}
		return c.print(e, user{Name: auth.FoldName(c.Name)}, password, c.JSON, "changed the password of "+auth.FoldName(c.Name))
	})
}

// print shows what was done; a generated password is alone on stdout.
func (p passwordSource) print(e *environmentOf, shown user, password string, asJSON bool, done string) error {
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
