package state

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/atomicfile"
)

// The files of the state directory.
const (
	stateFile    = "state.json"
	snapshotFile = "snapshot.json"
	heldBackFile = "held-back.json"
)

// runningFile holds the snapshot of which a service's files are in force.
func runningFile(service string) string { return "running-" + service + ".json" }

// maxFile bounds what is read of one file, in bytes: the largest snapshot and
// what is wrapped around it.
const maxFile = checkin.MaxAnswer + 64<<10

// Dir is the state directory. It is safe for concurrent use.
type Dir struct {
	path  string
	mutex sync.Mutex
	// onDisk holds the digest of each file as it was last read or written.
	onDisk map[string][sha256.Size]byte
	// toRead is true if nothing is written or removed; dropped is what would have
	// been removed.
	toRead  bool
	dropped map[string]bool
}

// Open returns the state directory and makes it if it is missing, with mode
// 0700: a snapshot tells a lot about a site.
func Open(dir string) (*Dir, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("open state directory: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("open state directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("open state directory: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("open state directory: %s is not a directory", dir)
	}
	return &Dir{path: dir, onDisk: map[string][sha256.Size]byte{}}, nil
}

// OpenToRead returns the state directory for whoever only looks. It need not
// exist. What is saved in it is lost, and what is dropped stays, but is not found
// any more.
func OpenToRead(dir string) *Dir {
	return &Dir{path: dir, onDisk: map[string][sha256.Size]byte{}, toRead: true, dropped: map[string]bool{}}
}

// AcceptedAt returns when the accepted snapshot was saved; the zero time if
// there is none.
func (d *Dir) AcceptedAt() time.Time {
	info, err := os.Stat(filepath.Join(d.path, snapshotFile))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// Load reads both files. It cannot fail: the errors are warnings, one per
// damaged file, of which as much is taken as makes sense. A missing file is a
// first run and needs no warning.
func (d *Dir) Load() (State, Accepted, []error) { return d.load(d.loadState()) }

// load adds the accepted snapshot to a state, and to what is to be warned of.
func (d *Dir) load(state State, stateErr error) (State, Accepted, []error) {
	var accepted Accepted
	content, err := d.read(snapshotFile)
	if err == nil && content != nil {
		accepted, err = parseAccepted(content)
	}
	if accepted.Snapshot.Site != nil {
		state.RealSite = true
	}
	var warnings []error
	for _, warning := range []error{stateErr, d.damage(snapshotFile, err)} {
		if warning != nil {
			warnings = append(warnings, warning)
		}
	}
	return state, accepted, warnings
}

func (d *Dir) loadState() (State, error) {
	var state State
	content, err := d.read(stateFile)
	if err == nil && content != nil {
		state, err = parseState(content)
	}
	return state, d.damage(stateFile, err)
}

// damage names the file with an error, if there is one.
func (d *Dir) damage(name string, err error) error {
	if err == nil {
		return nil
	}
	var named *fs.PathError
	if errors.As(err, &named) {
		err = named.Err // the name is told once
	}
	return fmt.Errorf("load %s: %w", filepath.Join(d.path, name), err)
}

// SaveState writes state.json if it differs from what was last loaded or
// saved.
func (d *Dir) SaveState(s State) error {
	content, err := encodeState(s)
	if err != nil {
		return fmt.Errorf("save state: %w", err)
	}
	if err := d.write(stateFile, content); err != nil {
		return fmt.Errorf("save state: %w", err)
	}
	return nil
}

// SaveAccepted writes snapshot.json if it differs from what was last loaded or
// saved. It refuses what Load would not read back.
func (d *Dir) SaveAccepted(a Accepted) error {
	content, err := encodeAccepted(a)
	if err != nil {
		return fmt.Errorf("save snapshot: %w", err)
	}
	if err := d.write(snapshotFile, content); err != nil {
		return fmt.Errorf("save snapshot: %w", err)
	}
	return nil
}

// SaveRunning remembers of which snapshot a service's files are in force, and
// the tag it came with. It is the snapshot as it was rendered: without the
// records that were refused, and with the previous version of those that kept
// it.
func (d *Dir) SaveRunning(service string, a Accepted) error {
	name := runningFile(service)
	_, _ = d.read(name) // one with this content is not written again
	content, err := encodeAccepted(a)
	if err == nil {
		err = d.write(name, content)
	}
	if err != nil {
		return fmt.Errorf("save what %s runs: %w", service, err)
	}
	return nil
}

// LoadRunning returns what SaveRunning was given last. Its Data is nil if that
// was never. An unchanged pass has no need of it.
func (d *Dir) LoadRunning(service string) (Accepted, error) {
	var running Accepted
	content, err := d.read(runningFile(service))
	if err == nil && content != nil {
		running, err = parseAccepted(content)
	}
	if err != nil {
		return Accepted{}, fmt.Errorf("load what %s runs: %w", service, err)
	}
	return running, nil
}

// SaveHeldBack keeps a snapshot that is not put into force for now, with its
// tag. State.Guard tells that there is one.
func (d *Dir) SaveHeldBack(a Accepted) error {
	content, err := encodeAccepted(a)
	if err == nil {
		err = d.write(heldBackFile, content)
	}
	if err != nil {
		return fmt.Errorf("save the snapshot that is held back: %w", err)
	}
	return nil
}

// LoadHeldBack returns what SaveHeldBack was given last. Its Data is nil if
// nothing is held back.
func (d *Dir) LoadHeldBack() (Accepted, error) {
	var heldBack Accepted
	content, err := d.read(heldBackFile)
	if err == nil && content != nil {
		heldBack, err = parseAccepted(content)
	}
	if err != nil {
		return Accepted{}, fmt.Errorf("load the snapshot that is held back: %w", err)
	}
	return heldBack, nil
}

// DropHeldBack removes the snapshot that was held back.
func (d *Dir) DropHeldBack() error {
	if err := d.remove(heldBackFile); err != nil {
		return fmt.Errorf("drop the snapshot that was held back: %w", err)
	}
	return nil
}

// DropSnapshots removes every snapshot, so that the next pass is a first one.
func (d *Dir) DropSnapshots() error {
	running, err := filepath.Glob(filepath.Join(d.path, runningFile("*")))
	errs := []error{err, d.remove(snapshotFile), d.remove(heldBackFile)}
	for _, path := range running {
		errs = append(errs, d.remove(filepath.Base(path)))
	}
	return errors.Join(errs...)
}

func (d *Dir) remove(name string) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.toRead {
		d.dropped[name] = true
		return nil
	}
	delete(d.onDisk, name)
	err := os.Remove(filepath.Join(d.path, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// read returns a file's content, or nil if there is no such file.
func (d *Dir) read(name string) ([]byte, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.dropped[name] {
		return nil, nil
	}
	// Without O_NONBLOCK a FIFO in the file's place would block for ever.
	file, err := os.OpenFile(filepath.Join(d.path, name), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("not a regular file but %s", info.Mode())
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("larger than %d bytes", maxFile)
	}
	content := make([]byte, info.Size())
	if _, err := io.ReadFull(file, content); err != nil {
		return nil, err
	}
	d.onDisk[name] = sha256.Sum256(content)
	return content, nil
}

// write replaces a file atomically and durably, unless it has that content.
func (d *Dir) write(name string, content []byte) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.toRead {
		return nil
	}
	sum := sha256.Sum256(content)
	if known, ok := d.onDisk[name]; ok && known == sum {
		return nil
	}
	delete(d.onDisk, name)
	// What a killed pass left half written must not pile up. That it cannot
	// be removed is no reason to lose the new content.
	path := filepath.Join(d.path, name)
	_, _ = atomicfile.SweepFor(path)
	if err := atomicfile.Write(path, content, 0o600); err != nil {
		return err
	}
	d.onDisk[name] = sum
	return nil
}
