package server_test

import (
	"io"
	"log/slog"
	"testing"

	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/internal/server"
)

func startServer(t *testing.T, c config.Config) (*server.Server, error) {
	t.Helper()
	return server.Start(t.Context(), c, "test", slog.New(slog.NewTextHandler(io.Discard, nil)))
}
