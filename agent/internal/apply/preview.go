package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/render"
)

// Preview makes an engine one that only says what it would do. Candidates are
// tested in a folder of their own. Their neighbours there are links to those of
// the live file, so that a relative include leads where it would; what the
// validator writes (see Service.Writes) is moved into the folder.
type Preview struct {
	folder string

	mutex sync.Mutex
	seen  map[string]Previewed
}

// Previewed is the latest thing an engine would have done for a service.
type Previewed struct {
	Result render.Result
	// Report is that of an Apply. OutcomeApplied means as far as the service's
	// own test can tell.
	Report Report
	// Action is how the process would be made to load the files; empty if it
	// would not.
	Action string
}

// NewPreview returns a preview that works in a folder, which must be empty and
// belong to nobody else.
func NewPreview(folder string) *Preview {
	return &Preview{folder: folder, seen: map[string]Previewed{}}
}

// Of returns what would be done for a service; found is false if the engine was
// not asked.
func (p *Preview) Of(service string) (_ Previewed, found bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	previewed, found := p.seen[service]
	return previewed, found
}

func (p *Preview) note(service Service, previewed Previewed) Report {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.seen[service.Name] = previewed
	return previewed.Report
}

// refuse is Engine.Refuse.
func (p *Preview) refuse(service Service, cause error) Report {
	return p.note(service, Previewed{Report: Report{Outcome: checkin.OutcomeRejected, Message: cause.Error()}})
}

// apply is Engine.Apply up to the moment where it would begin to write.
func (p *Preview) apply(ctx context.Context, e *Engine, service Service, result render.Result, last map[string]string) Report {
	if len(result.Files) == 0 {
		return p.note(service, Previewed{Result: result, Report: Report{Outcome: checkin.OutcomeSkipped, Message: result.Skipped}})
	}
	run := &run{engine: e, service: service, result: result, last: last}
	action, err := p.foresee(ctx, run)
	if err != nil {
		run.rejected(err)
	}
	return p.note(service, Previewed{Result: result, Report: run.report, Action: action})
}

func (p *Preview) foresee(ctx context.Context, run *run) (action string, err error) {
	if run.files, err = look(run.result.Files); err != nil {
		return "", err
	}
	run.noteEdits()
	for _, file := range run.files.all {
		if file.differs {
			run.report.Changed = append(run.report.Changed, file.Path)
		}
	}
	run.report.Outcome = checkin.OutcomeUnchanged
	if !run.engine.CutShort(run.service.Name) && run.upToDate(ctx) {
		return "", nil
	}
	if err := run.possible(ctx); err != nil {
		return "", err
	}
	if run.report.Tested, err = p.test(ctx, run.service, run.result); err != nil {
		return "", err
	}
	run.report.Outcome = checkin.OutcomeApplied
	if !run.engine.Reload {
		return "", nil
	}
	return run.service.Action(ctx, Activation{
		Files: run.files.paths(), Main: run.files.main().replaced(), Revision: run.result.Revision,
	}), nil
}

// test is Engine.Test.
func (p *Preview) test(ctx context.Context, service Service, result render.Result) (time.Duration, error) {
	main := result.Files[len(result.Files)-1]
	moved, candidate, err := p.stage(service, main)
	if err != nil {
		return 0, fmt.Errorf("stage the candidate for %s: %w", main.Path, err)
	}
	start := time.Now()
	err = service.Test(ctx, candidate, main.Path)
	return time.Since(start), moved.back(err)
}

// stage writes the candidate, beside links to what lies beside the live file.
func (p *Preview) stage(service Service, main render.File) (m moves, candidate string, err error) {
	live, beside := filepath.Dir(main.Path), filepath.Join(p.folder, service.Name, "beside")
	m = moves{{from: live + "/", to: beside + "/"}}
	content := main.Content
	for _, path := range service.Writes {
		moved := move{from: path, to: filepath.Join(p.folder, service.Name, "written", path)}
		if err := os.MkdirAll(filepath.Dir(moved.to), 0o755); err != nil {
			return nil, "", err
		}
		content = bytes.ReplaceAll(content, []byte(moved.from), []byte(moved.to))
		m = append(m, moved)
	}
	if err := mirror(live, beside); err != nil {
		return nil, "", err
	}
	candidate = filepath.Join(beside, filepath.Base(main.Path))
	if err := os.Remove(candidate); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", err
	}
	// Never through a link to the live file.
	file, err := os.OpenFile(candidate, os.O_WRONLY|os.O_CREATE|os.O_EXCL, main.Mode)
	if err != nil {
		return nil, "", err
	}
	_, err = file.Write(content)
	return m, candidate, errors.Join(err, file.Close())
}

// mirror makes a folder with links to all that is in another, unless it has
// done so before.
func mirror(live, folder string) error {
	if err := os.Mkdir(filepath.Dir(folder), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	entries, err := os.ReadDir(live)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		err = errors.Join(err, os.Symlink(filepath.Join(live, entry.Name()), filepath.Join(folder, entry.Name())))
	}
	return err
}

// move is a path, or the beginning of some, that lies elsewhere in a preview.
type move struct{ from, to string }

type moves []move

// back gives the paths in an error of the validator their own names again.
func (m moves) back(err error) error {
	if err == nil {
		return nil
	}
	named := func(text string) string {
		for _, move := range m {
			text = strings.ReplaceAll(text, move.to, move.from)
		}
		return text
	}
	var fault *Fault
	if !errors.As(err, &fault) {
		return errors.New(named(err.Error()))
	}
	said := &Fault{Words: named(fault.Words), Verdict: named(fault.Verdict), Elsewhere: named(fault.Elsewhere)}
	for _, place := range fault.Places {
		said.Places = append(said.Places, Place{File: named(place.File), Lines: place.Lines, Words: named(place.Words)})
	}
	return said
}
