package services

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"opensource.internal/agent/internal/services/servicestest"
	"opensource.internal/agent/internal/systemd"
)

func TestMain(m *testing.M) { servicestest.Main(m) }

var errNoBus = fmt.Errorf("ask: %w", systemd.ErrNoBus)

// noBus is a host without systemd.
type noBus struct{}

func (noBus) ActiveState(context.Context, string) (string, error) { return "", errNoBus }
func (noBus) LoadState(context.Context, string) (string, error)   { return "", errNoBus }
func (noBus) MainProcess(context.Context, string) (systemd.Process, error) {
	return systemd.Process{}, errNoBus
}
func (noBus) ReloadOrRestart(context.Context, string) error { return errNoBus }
func (noBus) Restart(context.Context, string) error         { return errNoBus }
func (noBus) HUP(context.Context, string) error             { return errNoBus }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(content)
}
