package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

func (s *source) tested(name, live string, test func(context.Context, string) (string, error)) func(context.Context) ([]File, error) {
	return func(ctx context.Context) ([]File, error) {
		if _, err := os.Stat(live); err != nil {
			return nil, err
		}
		said, err := test(ctx, live)
		verdict := "accepted"
		if err != nil {
			verdict = "refused: " + err.Error()
		}
		return []File{{name, []byte(said + "\n" + verdict + "\n")}}, nil
	}
}

// maxLog is how much of a log is taken, in bytes, from its end.
const maxLog = 256 << 10

// journalLines is how many lines of the journal are asked for.
const journalLines = "2000"

func (s *source) journal(name, whose string) func(context.Context) ([]File, error) {
	return func(ctx context.Context) ([]File, error) {
		var out tail
		err := s.Run(ctx, 10*time.Second, &out, "journalctl", whose, "--no-pager", "--output=short-iso-precise", "--lines="+journalLines)
		if len(out.kept) == 0 && err != nil {
			return nil, err
		}
		if err == nil && noEntries(out.kept) {
			return nil, errors.New("the journal has nothing of it")
		}
		return []File{{name, out.kept}}, err
	}
}

// noEntries tells whether journalctl only says that it has found nothing.
func noEntries(said []byte) bool {
	for line := range bytes.Lines(said) {
		if !bytes.HasPrefix(line, []byte("No journal files were")) && !bytes.HasPrefix(line, []byte("-- No entries --")) {
			return false
		}
	}
	return true
}

// tail keeps the last maxLog bytes that are written to it.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if extra := len(t.kept) - maxLog; extra > 0 {
		t.kept = slices.Delete(t.kept, 0, extra)
	}
	return len(p), nil
}

func (s *source) errorLog(context.Context) ([]File, error) {
	file, err := open(s.Known.Facts.Paths.NGINXErrorLog)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.NewSectionReader(file, max(0, info.Size()-maxLog), maxLog))
	return []File{{"nginx-error.log", content}}, err
}

// versions asks every program that has a part in what the host does.
func (s *source) versions(ctx context.Context) ([]File, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "opensource-agent %s (%s %s/%s)\n", s.Pass.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	fmt.Fprintf(&out, "%s\n", s.Known.Host.Host.OS)
	if release, err := os.ReadFile("/proc/version"); err == nil {
		out.Write(release)
	}
	var faults []error
	for _, command := range [][]string{
		{"nginx", "-V"},
		{"dnsmasq", "--version"},
		{"systemctl", "--version"},
		{"dpkg-query", "--show", "opensource-agent", "opensource-manager", "nginx", "libnginx-mod-*", "dnsmasq*", "ssl-cert", "systemd*"},
	} {
		fmt.Fprintf(&out, "\n# %s\n", strings.Join(command, " "))
		err := s.Run(ctx, 5*time.Second, &out, command[0], command[1:]...)
		if err != nil && command[0] != "dpkg-query" { // which fails for each package that is not there
			faults = append(faults, err)
		}
	}
	return []File{{"versions.txt", out.Bytes()}}, errors.Join(faults...)
}

func (s *source) units(ctx context.Context) ([]File, error) {
	if s.Pass.Root != "" {
		return nil, errors.New("systemd is left alone, because of --root")
	}
	var out bytes.Buffer
	for _, unit := range []string{"opensource-agent.timer", "opensource-agent.service", "nginx.service", "dnsmasq.service", "systemd-resolved.service"} {
		load, err := s.Units.LoadState(ctx, unit)
		if err != nil {
			return nil, err // and so would be all others
		}
		active, errActive := s.Units.ActiveState(ctx, unit)
		file, errFile := s.Units.UnitFileState(ctx, unit)
		fmt.Fprintf(&out, "%s: %s, %s, %s\n", unit, load, active, file)
		if err := errors.Join(errActive, errFile); err != nil {
			fmt.Fprintln(&out, err)
		}
	}
	// Its exit status only tells that some unit does not run.
	_ = s.Run(ctx, 10*time.Second, &out, "systemctl", "status", "--no-pager", "--full", "--lines=0",
		"opensource-agent.timer", "opensource-agent.service", "nginx.service", "dnsmasq.service")
	return []File{{"units.txt", out.Bytes()}}, nil
}

func (s *source) system(context.Context) ([]File, error) {
	return read([]string{
		"/proc/self/mountinfo", "/proc/self/uid_map", "/proc/self/gid_map", "/etc/resolv.conf", "/etc/hosts", "/etc/os-release",
	}, func(path string) string { return "system" + path })
}
