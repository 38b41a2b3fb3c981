package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"opensource.internal/agent/internal/atomicfile"
	"opensource.internal/agent/render"
)

// record is what is written down, durably, before the first live file of a
// service is replaced, and removed when the new files are proven or the old
// ones are back. A run that finds one knows what the run before it was about
// when it was cut short: also which files that were, should none of them be
// managed any more. Their previous versions lie beside them, see atomicfile.
type record struct {
	Service  string    `json:"service"`
	Begun    time.Time `json:"begun"`
	Revision string    `json:"revision"` // that was to be put into force
	// Files are all of the service, in the order of commits.
	Files []recordedFile `json:"files"`
}

// recordedFile is one file with its content before and after, as hexadecimal
// SHA-256 or "absent".
type recordedFile struct {
	Path string `json:"path"`
	Old  string `json:"old,omitempty"` // empty if it is not known any more
	New  string `json:"new"`
}

const absent = "absent"

// recordPath is where the record of a service's commit lies; empty if none is
// kept.
func (e *Engine) recordPath(service string) string {
	if e.Records == "" {
		return ""
	}
	return filepath.Join(e.Records, "commit-"+service+".json")
}

// CutShort reports whether an earlier run has begun to replace the files of a
// service and not come to an end. Apply and Refuse make that good.
func (e *Engine) CutShort(service string) bool {
	path := e.recordPath(service)
	if path == "" {
		return false
	}
	_, err := os.Lstat(path)
	return err == nil
}

// lookBack reads what an earlier run has left written down, and says so. Of a
// record that is damaged no more is known than that there was such a run; the
// versions it kept beside the files tell the rest.
func (r *run) lookBack() {
	if !r.engine.CutShort(r.service.Name) {
		return
	}
	found, err := readRecord(r.engine.recordPath(r.service.Name), r.service.Name)
	if err != nil {
		r.log.Warn("going on with less knowledge", "error", err)
		r.earlier = &record{}
		return
	}
	r.earlier = found
	r.log.Warn("an earlier pass was cut short", "begun", found.Begun.Local().Format(time.DateTime), "files", found.changed())
}

func readRecord(path, service string) (*record, error) {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() { // reading a pipe would never end
		err = fmt.Errorf("not a regular file but %s", info.Mode())
	}
	var content []byte
	if err == nil {
		content, err = os.ReadFile(path)
	}
	var found record
	if err == nil {
		err = json.Unmarshal(content, &found)
	}
	if err == nil && (found.Service != service || len(found.Files) == 0) {
		err = errors.New("it names no files of this service")
	}
	for _, file := range found.Files {
		if err == nil && !filepath.IsAbs(file.Path) {
			err = fmt.Errorf("%q is no absolute path", file.Path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of a commit %s: %w", path, err)
	}
	return &found, nil
}

// changed names the files that the run was about to replace.
func (r *record) changed() []string {
	var paths []string
	for _, file := range r.Files {
		if file.Old != file.New {
			paths = append(paths, file.Path)
		}
	}
	return paths
}

// old returns the content that a file had before, if that is known.
func (r *record) old(path string) string {
	if r == nil {
		return ""
	}
	at := slices.IndexFunc(r.Files, func(file recordedFile) bool { return file.Path == path })
	if at < 0 {
		return ""
	}
	return r.Files[at].Old
}

// files is the set of files that the run was about, with nothing wanted of
// them, after clearing away what it had staged beside them.
func (r *record) files() (*files, error) {
	set := &files{}
	for _, recorded := range r.Files {
		if _, err := atomicfile.SweepFor(recorded.Path); err != nil {
			return nil, err
		}
		pending, err := atomicfile.Pending(recorded.Path)
		if err != nil {
			return nil, err
		}
		set.all = append(set.all, &file{
			File: render.File{Path: recorded.Path}, differs: recorded.Old != recorded.New, pending: pending,
		})
		set.kept = set.kept || pending
	}
	set.interrupted = set.kept || !r.finished()
	return set, nil
}

// finished reports whether all files are live as the run wanted them.
func (r *record) finished() bool {
	return !slices.ContainsFunc(r.Files, func(file recordedFile) bool { return liveDigest(file.Path) != file.New })
}

// undone reports whether all files are live as they were before the run.
func (r *record) undone() bool {
	return !slices.ContainsFunc(r.Files, func(file recordedFile) bool { return file.Old != "" && liveDigest(file.Path) != file.Old })
}

// maxLive is the size of the largest file, in bytes, that anybody reads to the
// end: far more than a service is ever given.
const maxLive = 256 << 20

// liveDigest is the digest of a live file, or absent; empty for what cannot be
// read.
func liveDigest(path string) string {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return absent
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxLive {
		return ""
	}
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return ""
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// note writes down what commit is about to do. What an earlier run was about
// stays in it until that is settled.
func (r *run) note() error {
	path := r.engine.recordPath(r.service.Name)
	if path == "" || !r.files.differ() {
		return nil
	}
	content, err := json.Marshal(r.recorded())
	if err == nil {
		_, err = atomicfile.SweepFor(path)
	}
	if err == nil {
		err = atomicfile.Write(path, append(content, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("not applied, since what is about to be replaced could not be written down: %w", err)
	}
	r.noted = true
	r.reached("noted")
	return nil
}

func (r *run) recorded() record {
	now := record{Service: r.service.Name, Begun: time.Now().UTC().Truncate(time.Second), Revision: r.result.Revision}
	for _, path := range r.files.gone {
		old := r.earlier.old(path)
		now.Files = append(now.Files, recordedFile{Path: path, Old: old, New: old})
	}
	for _, file := range r.files.all {
		old := file.digest
		switch {
		case file.pending:
			old = r.earlier.old(file.Path)
		case file.managed != nil:
			old = digest(file.managed)
		case file.differs:
			old = liveDigest(file.Path)
		}
		now.Files = append(now.Files, recordedFile{Path: file.Path, Old: old, New: file.digest})
	}
	return now
}

// close removes the record, now that nothing is half done any more, and says
// what became of the work of an earlier run.
func (r *run) close() {
	if r.earlier == nil && !r.noted {
		return
	}
	if r.earlier != nil && len(r.earlier.Files) > 0 {
		r.log.Info("what the earlier pass had begun is " + r.earlier.end())
	}
	if err := atomicfile.Remove(r.engine.recordPath(r.service.Name)); err != nil {
		r.log.Warn("record of a commit left behind", "error", err)
	}
	r.earlier, r.noted = nil, false
	r.reached("closed")
}

// end says, by the live files, what became of the run's work.
func (r *record) end() string {
	switch {
	case r.finished():
		return "finished"
	case r.undone():
		return "undone"
	}
	return "replaced by what is wanted now"
}
