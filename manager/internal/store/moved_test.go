package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

// What is written into a file that was moved away or deleted would be found by
// nobody: nothing is answered with success until it is back.
func TestNothingIsWrittenToAMovedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manager.db")
	s := openFile(t, path)
	write := func(name string) error {
		_, err := s.CreateSite(t.Context(), inventory.Site{Name: name})
		return err
	}
	if err := write("before"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".elsewhere"); err != nil {
		t.Fatal(err)
	}
	if err := write("gone"); !store.Unavailable(err) {
		t.Errorf("deleted: %v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write("another"); !store.Unavailable(err) {
		t.Errorf("replaced: %v", err)
	}
	if err := s.Writable(t.Context()); !store.Unavailable(err) {
		t.Errorf("writable: %v", err)
	}
	if err := os.Rename(path+".elsewhere", path); err != nil {
		t.Fatal(err)
	}
	if err := write("back"); err != nil {
		t.Errorf("back: %v", err)
	}
}
