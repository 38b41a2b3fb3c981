package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"opensource.internal/agent/internal/bundle"
	"opensource.internal/agent/internal/config"
	"opensource.internal/agent/internal/pass"
	"opensource.internal/agent/internal/preflight"
	"opensource.internal/agent/internal/status"
)

// bundleCommand writes a support archive.
type bundleCommand struct {
	Out string `placeholder:"FILE" help:"Write the archive to this file, which must not exist; - is standard output. Default: opensource-agent-HOST-TIME.tar.gz in this folder."`
}

// Help implements kong.HelpProvider.
func (*bundleCommand) Help() string {
	return `All that somebody else needs to see what this host runs and why, and to render it again: snapshots, files, versions, what the programs say of them, state, the end of the logs. Keys, passwords, cookies and private keys are taken out. Its README.txt says what is in it, and what could not be had. Look through it before you give it to others.

Examples:
  sudo opensource-agent bundle
  sudo opensource-agent bundle --out - | ssh me@desk 'cat > site.tar.gz'

Exit status: 0 written, 1 it could not be written, 2 usage, such as a file that exists or no such folder, or not root.`
}

func (c *bundleCommand) run(ctx context.Context, env environment) pass.Code {
	i, err := inspect(ctx, env)
	if err != nil {
		return env.fail(pass.Usage, err)
	}
	defer i.close()
	if i.known.Unread != nil {
		return env.fail(pass.Usage, pass.Advised(i.known.Unread, "bundle"))
	}
	now := time.Now()
	folder := "opensource-agent-" + fileName(i.known.Host.Hostname) + "-" + now.Format("20060102-150405")
	redact := bundle.NewRedactor(config.Secrets(env.flags, env.environ)...)
	write := func(out io.Writer) error {
		return bundle.Write(ctx, out, folder, bundle.Parts(i.bundle(), redact), redact, env.stderr)
	}
	if c.Out == "-" {
		if isTerminal(env.stdout) {
			return env.fail(pass.Usage, errors.New("--out: an archive is nothing for a terminal: name a file"))
		}
		if err := write(env.stdout); err != nil {
			return env.fail(pass.Unexpected, err)
		}
		return pass.Settled
	}
	name := c.Out
	if name == "" {
		name = folder + ".tar.gz"
	}
	file, err := newFile(name)
	if err != nil {
		return env.fail(pass.Usage, fmt.Errorf("--out: %w", err))
	}
	if err := fill(file, write); err != nil {
		return env.fail(pass.Unexpected, err)
	}
	fmt.Fprintln(env.stdout, name)
	return pass.Settled
}

// newFile makes a file that only its owner reads.
func newFile(name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if !errors.Is(err, fs.ErrExist) {
		return file, err
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder: name a file in it", name)
	}
	return nil, fmt.Errorf("%w: name another one", err)
}

// fill writes a new file. One that cannot be written to its end is removed.
func fill(file *os.File, write func(io.Writer) error) error {
	err := errors.Join(write(file), file.Close())
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", file.Name(), err), os.Remove(file.Name()))
	}
	return nil
}

// fileName makes a host's name fit to be a part of a file's.
func fileName(host string) string {
	name := []byte(host)
	for i, c := range name {
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-'
		if !plain {
			name[i] = '_'
		}
	}
	return string(name)
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&fs.ModeCharDevice != 0
}

func (i inspection) bundle() bundle.Options {
	return bundle.Options{
		Pass:      i.pass,
		Known:     i.known,
		Templates: i.preflight.Overrides,
		Units:     i.preflight.Units,
		Check: func(ctx context.Context, out io.Writer) error {
			preflight.Run(ctx, i.preflight, func(f preflight.Finding) { fmt.Fprintln(out, f) })
			return nil
		},
		Status: func(ctx context.Context, out io.Writer) error {
			found, err := status.Gather(ctx, i.pass)
			if err != nil {
				return err
			}
			return found.Write(out)
		},
		Settings: i.tellSettings,
	}
}

// tellSettings tells what is set, and how the files that it is set in may be
// read; but nothing that others keep in them.
func (i inspection) tellSettings(_ context.Context, out io.Writer) error {
	for _, setting := range i.preflight.Settings {
		fmt.Fprintf(out, "%s is %s, from %s\n", setting.Name, setting.Value, setting.From)
	}
	for _, mistake := range i.preflight.Mistakes {
		fmt.Fprintln(out, "mistake:", mistake)
	}
	for _, name := range config.Files {
		info, err := os.Stat(i.pass.Root + name)
		if err != nil {
			fmt.Fprintln(out, err)
			continue
		}
		fmt.Fprintf(out, "%s: %s, %d bytes, changed %s\n", i.pass.Root+name, info.Mode(), info.Size(), info.ModTime().UTC().Format(time.RFC3339))
	}
	return nil
}
