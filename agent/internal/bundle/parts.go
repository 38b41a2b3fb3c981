package bundle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/pass"
	"opensource.internal/agent/internal/services"
	"opensource.internal/agent/render"
)

// Options is what an archive is made from.
type Options struct {
	Pass  pass.Options
	Known pass.Known
	// Templates is the folder of an administrator's templates.
	Templates string
	// Check and Status write what the commands of those names do; Settings
	// every setting and where it is from.
	Check, Status, Settings func(context.Context, io.Writer) error
	Units                   Units
	// Run runs a program; services.Run if nil.
	Run func(ctx context.Context, timeout time.Duration, out io.Writer, name string, args ...string) error
}

// Units is what is asked of systemd.
type Units interface {
	ActiveState(ctx context.Context, unit string) (string, error)
	LoadState(ctx context.Context, unit string) (string, error)
	UnitFileState(ctx context.Context, unit string) (string, error)
}

// Parts returns the parts of an archive: what a reader looks at first comes
// first.
func Parts(o Options, redact *Redactor) []Part {
	if o.Run == nil {
		o.Run = services.Run
	}
	s := &source{Options: o, redact: redact}
	paths := o.Known.Facts.Paths
	return []Part{
		{"check.txt", "what opensource-agent check says", text("check.txt", o.Check)},
		{"status.txt", "what opensource-agent status says", text("status.txt", o.Status)},
		{"settings.txt", "settings and where each is from", text("settings.txt", o.Settings)},
		{"versions.txt", "versions of agent, operating system, nginx, dnsmasq, packages", s.versions},
		{"units.txt", "the systemd units", s.units},
		{"snapshot.json", "the accepted snapshot: what is meant to be in force", s.snapshot},
		{"facts.json", "what this host can do, as far as rendering needs to know", s.facts},
		{"templates/", "templates of this host that take the place of the embedded ones", s.templates},
		{"rendered/", "what the accepted snapshot makes on this host", s.rendered},
		{"live/", "the files that are live, and drop-ins of others beside them", s.live},
		{"state/", "the state directory: state, and snapshots that are held back or run", s.state},
		{"nginx-test.txt", "what nginx -t says of the live files", s.tested("nginx-test.txt", paths.NGINXConf, services.TestNGINX)},
		{"dnsmasq-test.txt", "what dnsmasq --test says of the live files", s.tested("dnsmasq-test.txt", paths.DNSMasqConf, services.TestDNSMasq)},
		{"agent.log", "the agent's last journal lines", s.journal("agent.log", "--identifier=opensource-agent")},
		{"nginx.log", "nginx's last journal lines", s.journal("nginx.log", "--unit=nginx.service")},
		{"dnsmasq.log", "dnsmasq's last journal lines", s.journal("dnsmasq.log", "--unit=dnsmasq.service")},
		{"nginx-error.log", "the end of nginx's error log", s.errorLog},
		{"system/", "mounts, id maps, name servers and operating system of this host", s.system},
	}
}

// source collects the files of the parts.
type source struct {
	Options
	redact *Redactor
}

func text(name string, write func(context.Context, io.Writer) error) func(context.Context) ([]File, error) {
	return func(ctx context.Context) ([]File, error) {
		var out bytes.Buffer
		err := write(ctx, &out)
		return []File{{name, out.Bytes()}}, err
	}
}

// snapshot is written in the form of the state directory.
func (s *source) snapshot(context.Context) ([]File, error) {
	if s.Known.Accepted.Data == nil {
		return nil, s.noSnapshot()
	}
	etag, _ := json.Marshal(s.Known.Accepted.ETag)
	content := slices.Concat([]byte(`{"etag":`), etag, []byte(`,"data":`), s.Known.Accepted.Data, []byte("}\n"))
	return []File{{"snapshot.json", content}}, nil
}

// noSnapshot says why there is none.
func (s *source) noSnapshot() error {
	if len(s.Known.Warnings) > 0 {
		return errors.Join(s.Known.Warnings...)
	}
	return errors.New("no snapshot was ever accepted")
}

func (s *source) facts(context.Context) ([]File, error) {
	content, err := json.MarshalIndent(s.Known.Facts, "", "  ")
	return []File{{"facts.json", append(content, '\n')}}, err
}

// redactedFacts are the facts as whoever has the archive reads them.
func (s *source) redactedFacts() (facts render.Facts, err error) {
	content, err := json.Marshal(s.Known.Facts)
	if err != nil {
		return facts, err
	}
	return facts, json.Unmarshal(s.redact.JSON(content), &facts)
}

func (s *source) templates(context.Context) ([]File, error) {
	files, err := s.overrides()
	return append([]File{{Name: "templates/"}}, files...), err
}

// overrides reads an administrator's templates, by their names below the folder
// of that name.
func (s *source) overrides() ([]File, error) {
	paths, err := filepath.Glob(filepath.Join(s.Templates, "*", "*.tmpl"))
	if err != nil {
		return nil, err
	}
	return read(paths, func(path string) string {
		name, _ := filepath.Rel(s.Templates, path)
		return "templates/" + name
	})
}

// rendered renders what is in the archive, and so without secrets: whoever
// does it again gets the same.
func (s *source) rendered(ctx context.Context) ([]File, error) {
	if s.Known.Accepted.Data == nil {
		return nil, s.noSnapshot()
	}
	snapshot, err := checkin.ParseSnapshot(s.redact.JSON(s.Known.Accepted.Data))
	if err != nil {
		return nil, err
	}
	overrides, err := s.overrides()
	if err != nil {
		return nil, err
	}
	facts, err := s.redactedFacts()
	if err != nil {
		return nil, err
	}
	options := s.Pass
	options.Templates = folderOf(overrides, s.redact)
	var files []File
	var faults []error
	for _, service := range pass.Render(options, snapshot, facts) {
		if service.Err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", service.Service, service.Err))
		}
		for _, file := range service.Files {
			files = append(files, File{"rendered" + file.Path, file.Content})
		}
	}
	return files, errors.Join(faults...)
}

// live reads the managed files, and what nginx and dnsmasq read besides.
func (s *source) live(context.Context) ([]File, error) {
	paths := s.Known.Facts.Paths
	wanted := []string{paths.NGINXConf, paths.DNSMasqConf}
	for _, name := range []string{"dhcp-hosts", "hosts", "dhcp-opts", "servers"} {
		wanted = append(wanted, filepath.Join(paths.DNSMasqDir, name))
	}
	for _, pattern := range []string{
		filepath.Join(filepath.Dir(paths.NGINXConf), "conf.d/*.conf"),
		filepath.Join(filepath.Dir(paths.NGINXConf), "modules-enabled/*.conf"),
		filepath.Join(filepath.Dir(paths.DNSMasqConf), "dnsmasq.d/*"),
		filepath.Join(filepath.Dir(paths.DNSMasqConf), "default/dnsmasq"),
	} {
		found, _ := filepath.Glob(pattern) // the patterns are right
		wanted = append(wanted, found...)
	}
	return read(wanted, func(path string) string { return "live" + path })
}

// state reads all files of the state directory, but nothing in its folders.
func (s *source) state(context.Context) ([]File, error) {
	entries, err := os.ReadDir(s.Pass.StateDirectory)
	if err != nil {
		return nil, err
	}
	var wanted []string
	for _, entry := range entries {
		if entry.Type().IsRegular() {
			wanted = append(wanted, filepath.Join(s.Pass.StateDirectory, entry.Name()))
		}
	}
	return read(wanted, func(path string) string { return "state/" + filepath.Base(path) })
}
