package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"opensource.internal/agent/render"
)

// stagedSuffix ends the names of files that are not all written yet.
const stagedSuffix = ".opensource-agent-new"

// writeTree writes files below dir under their full names: all of them or none.
// A symbolic link in dir is not followed out of it.
func writeTree(dir string, files []render.File, intoUsed bool) error {
	made, err := makeFolder(dir)
	if err != nil {
		return err
	}
	if entries, err := os.ReadDir(dir); err != nil {
		return fmt.Errorf("--out: %w", err)
	} else if len(entries) > 0 && !intoUsed {
		return fmt.Errorf("--out: %s is not empty: name another folder, or add --force to replace what is of the same name in it", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	t := tree{root: root}
	if err := t.write(files); err != nil {
		t.undo()
		if made {
			_ = os.Remove(dir)
		}
		return fmt.Errorf("nothing is written to %s: %w", dir, err)
	}
	return nil
}

// makeFolder reports whether the folder had to be made.
func makeFolder(dir string) (bool, error) {
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		if info, err := os.Stat(dir); err == nil && !info.IsDir() {
			return false, fmt.Errorf("--out: %s is not a folder", dir)
		}
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("--out: %w", err)
	}
	return true, nil
}

// tree is a folder that is being filled.
type tree struct {
	root *os.Root
	made []string // what was made, in this order
}

// write stages all files before it gives the first one its name.
func (t *tree) write(files []render.File) error {
	for _, file := range files {
		if err := t.stage(file); err != nil {
			return err
		}
	}
	for _, file := range files {
		name := inside(file.Path)
		if info, err := t.root.Lstat(name); err == nil && info.IsDir() {
			return fmt.Errorf("%s is a folder", name)
		}
	}
	for _, file := range files {
		if err := t.root.Rename(inside(file.Path)+stagedSuffix, inside(file.Path)); err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) stage(file render.File) error {
	name := inside(file.Path)
	if err := t.folder(filepath.Dir(name)); err != nil {
		return err
	}
	staged := name + stagedSuffix
	if err := t.root.WriteFile(staged, file.Content, file.Mode); err != nil {
		return err
	}
	t.made = append(t.made, staged)
	return nil
}

// folder makes a folder and those above it, as far as they are missing.
func (t *tree) folder(name string) error {
	if name == "." {
		return nil
	}
	if err := t.folder(filepath.Dir(name)); err != nil {
		return err
	}
	err := t.root.Mkdir(name, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		t.made = append(t.made, name)
	}
	return err
}

// undo removes what was made, as far as it is still there and empty.
func (t *tree) undo() {
	for _, name := range slices.Backward(t.made) {
		_ = t.root.Remove(name)
	}
}

// inside is an absolute, clean path as seen from the folder.
func inside(path string) string { return strings.TrimPrefix(path, "/") }
