package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// read reads files under the names that rename gives them. One that is not
// there, or is no file, stops no other.
func read(paths []string, rename func(string) string) ([]File, error) {
	var files []File
	var faults []error
	for _, path := range paths {
		content, err := readFile(path)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		files = append(files, File{rename(path), content})
	}
	return files, errors.Join(faults...)
}

func readFile(path string) ([]byte, error) {
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return content, err
}

// open opens a regular file. Anything else, such as a pipe, could block for
// ever.
func open(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// folder holds files in memory as a file system: render takes templates from
// one.
type folder map[string][]byte

func folderOf(files []File, redact *Redactor) folder {
	f := folder{}
	for _, file := range files {
		f[strings.TrimPrefix(file.Name, "templates/")] = redact.File(file.Name, file.Content)
	}
	return f
}

// Open implements fs.FS.
func (f folder) Open(name string) (fs.File, error) {
	content, found := f[name]
	if !found {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &memoryFile{bytes.NewReader(content), filepath.Base(name)}, nil
}

// memoryFile is an open file, and tells what it is.
type memoryFile struct {
	*bytes.Reader
	name string
}

func (m *memoryFile) Stat() (fs.FileInfo, error) { return m, nil }
func (m *memoryFile) Close() error               { return nil }
func (m *memoryFile) Name() string               { return m.name }
func (m *memoryFile) Mode() fs.FileMode          { return 0o444 }
func (m *memoryFile) ModTime() time.Time         { return time.Time{} }
func (m *memoryFile) IsDir() bool                { return false }
func (m *memoryFile) Sys() any                   { return nil }
