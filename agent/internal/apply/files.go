package apply

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"opensource.internal/agent/internal/atomicfile"
	"opensource.internal/agent/render"
)

// OriginalSuffix is appended to the name of a service's main file for the
// content it had before the agent first replaced it.
const OriginalSuffix = ".before-opensource"

// files is the set of files of one service, in the order of commits.
type files struct {
	all []*file
	// gone are files that an earlier run has committed and that are not wanted
	// any more.
	gone []string
	// kept is true if the version before is kept of a file: an earlier run
	// committed it and was cut short before it was proven or restored.
	kept bool
	// interrupted is true if an earlier run was cut short, so that the process
	// may have loaded what it committed.
	interrupted bool
}

// file is one of them: what is wanted, and what there is.
type file struct {
	render.File
	digest  string // of the wanted content
	differs bool   // from the live content
	pending bool   // an earlier run was replacing it when it was cut short
	edited  bool   // somebody else has changed it since it was put into force
	// managed is what was in force before it was edited, if that is known.
	managed []byte
	staged  *atomicfile.Staged
}

// compare looks at the live files, after clearing away what a killed run may
// have staged beside them.
func compare(wanted []render.File) (*files, error) {
	for _, want := range wanted {
		if _, err := atomicfile.SweepFor(want.Path); err != nil {
			return nil, err
		}
	}
	return look(wanted)
}

// look looks at the live files and changes nothing.
func look(wanted []render.File) (*files, error) {
	set := &files{}
	for _, want := range wanted {
		file := &file{File: want, digest: digest(want.Content)}
		var err error
		if file.differs, err = differs(want); err != nil {
			return nil, fmt.Errorf("compare live file: %w", err)
		}
		if file.pending, err = atomicfile.Pending(want.Path); err != nil {
			return nil, err
		}
		set.kept = set.kept || file.pending
		set.all = append(set.all, file)
	}
	set.interrupted = set.kept
	return set, nil
}

// takeOver adds the files of a run that was cut short.
func (f *files) takeOver(left *files) {
	for _, theirs := range left.all {
		at := slices.IndexFunc(f.all, func(file *file) bool { return file.Path == theirs.Path })
		if at < 0 {
			f.gone = append(f.gone, theirs.Path)
			continue
		}
		f.all[at].pending = f.all[at].pending || theirs.differs && left.interrupted
	}
	f.kept = f.kept || left.kept
	f.interrupted = f.interrupted || left.interrupted
}

// differs reports whether the live file has another content than the wanted
// one. What is no regular file is an error: reading a pipe would never end.
func differs(want render.File) (bool, error) {
	info, err := os.Stat(want.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, err
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("%s is not a regular file but %s", want.Path, info.Mode())
	case info.Size() != int64(len(want.Content)):
		return true, nil
	}
	content, err := os.ReadFile(want.Path)
	return !bytes.Equal(content, want.Content), err
}

// Undisturbed reports whether every file of a Report's Digests is what it was
// then, and none was replaced since by a run that was cut short: what such a
// run leaves may look as it should and yet not be what the process has loaded.
func Undisturbed(digests map[string]string) bool {
	for path, want := range digests {
		if !holds(path, want) || cutShort(path) {
			return false
		}
	}
	return true
}

// Edited names the files of a Report's Digests that somebody else has given
// another content. What a run that was cut short has written is no edit.
func Edited(digests map[string]string) []string {
	var edited []string
	for _, path := range slices.Sorted(maps.Keys(digests)) {
		if !holds(path, digests[path]) && !cutShort(path) {
			edited = append(edited, path)
		}
	}
	return edited
}

// Edits identifies what Edited has found; it is empty if that is nothing.
func Edits(digests map[string]string) string {
	var found strings.Builder
	for _, path := range Edited(digests) {
		fmt.Fprintln(&found, path, liveDigest(path))
	}
	if found.Len() == 0 {
		return ""
	}
	return digest([]byte(found.String()))
}

// holds reports whether a file has the content with that digest.
func holds(path, want string) bool { return liveDigest(path) == want }

func cutShort(path string) bool {
	pending, err := atomicfile.Pending(path)
	return err != nil || pending
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// main returns the service's main file, the one its validator reads.
func (f *files) main() *file { return f.all[len(f.all)-1] }

func (f *files) differ() bool {
	return slices.ContainsFunc(f.all, func(file *file) bool { return file.differs })
}

func (f *files) paths() []string {
	paths := make([]string, len(f.all))
	for i, file := range f.all {
		paths[i] = file.Path
	}
	return paths
}

func (f *files) digests() map[string]string {
	digests := make(map[string]string, len(f.all))
	for _, file := range f.all {
		digests[file.Path] = file.digest
	}
	return digests
}

// noteEdits finds the files that are not what was put into force last, although
// no run of ours has written them since. last holds the digests of what was in
// force, inForce returns its content, as far as it is known.
func (f *files) noteEdits(last map[string]string, inForce func() []render.File) {
	var known map[string][]byte
	for _, file := range f.all {
		was := last[file.Path]
		if !file.differs || file.pending || was == "" || holds(file.Path, was) {
			continue
		}
		if was == file.digest {
			file.edited, file.managed = true, file.Content
			continue
		}
		if known == nil {
			known = contents(inForce())
		}
		content, found := known[file.Path]
		if found && holds(file.Path, digest(content)) {
			continue // a run that could not say so in the end has put it into force
		}
		file.edited = true
		if found && digest(content) == was {
			file.managed = content
		}
	}
}

func contents(files []render.File) map[string][]byte {
	contents := make(map[string][]byte, len(files))
	for _, file := range files {
		contents[file.Path] = file.Content
	}
	return contents
}

// drifted names the edited files, and what had been in force of those of which
// it is known.
func (f *files) drifted() (paths []string, managed map[string][]byte) {
	managed = map[string][]byte{}
	for _, file := range f.all {
		if file.edited {
			paths = append(paths, file.Path)
		}
		if file.managed != nil {
			managed[file.Path] = file.managed
		}
	}
	return paths, managed
}

// stage writes every wanted content that is not live yet beside its
// destination. A folder that is missing is made.
func (f *files) stage() error {
	for _, file := range f.all {
		if !file.differs {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file.Path), 0o755); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
		var err error
		if file.staged, err = atomicfile.Stage(file.Path, file.Content, file.Mode); err != nil {
			return err
		}
	}
	return nil
}

// discard removes what is staged and not committed.
func (f *files) discard() error {
	var faults []error
	for _, file := range f.all {
		if file.staged != nil {
			faults = append(faults, file.staged.Discard())
		}
	}
	return errors.Join(faults...)
}

// restore brings back the previous version of all files, in the opposite order
// of commits. One that cannot be restored does not stop the others.
func (f *files) restore() error {
	var faults []error
	for _, file := range slices.Backward(f.all) {
		faults = append(faults, atomicfile.Restore(file.Path))
	}
	return errors.Join(append(faults, f.putBackGone())...)
}

// putBackGone brings back the previous version of files that are not wanted
// any more.
func (f *files) putBackGone() error {
	var faults []error
	for _, path := range f.gone {
		faults = append(faults, atomicfile.Restore(path))
	}
	return errors.Join(faults...)
}

// forget drops the previous versions, the main file's last: as long as one is
// left, the next run knows that the main file may not be loaded.
func (f *files) forget() error {
	var faults []error
	for _, file := range f.all {
		faults = append(faults, atomicfile.Forget(file.Path))
	}
	return errors.Join(faults...)
}

// commit makes the staged content live, and keeps what was in force before.
func (f *file) commit() error {
	if f.managed != nil {
		if err := atomicfile.KeepInstead(f.Path, f.managed, f.Mode); err != nil {
			return err
		}
	}
	return f.staged.CommitKeeping()
}

// candidate is the path of the content that is to be tested.
func (f *file) candidate() string {
	if f.staged == nil {
		return f.Path
	}
	return f.staged.Path()
}

// replaced reports whether the live file may be another than the one before
// this run, or before an earlier one that was cut short.
func (f *file) replaced() bool { return f.differs || f.pending }

// preserve keeps, once, what was there before the agent came.
func (f *file) preserve(last map[string]string) error {
	if !f.differs || last[f.Path] != "" {
		return nil
	}
	return atomicfile.Preserve(f.Path, OriginalSuffix)
}
