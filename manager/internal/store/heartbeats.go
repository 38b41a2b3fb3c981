package store

import (
	"log/slog"
	"time"
)

type heartbeats struct{}

func startHeartbeats(*Store, time.Duration, *slog.Logger) *heartbeats { return &heartbeats{} }

func (*heartbeats) stop() error { return nil }
