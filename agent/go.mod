module opensource.internal/agent

go 1.26.0

require (
	github.com/alecthomas/kong v1.17.0
	github.com/aymanbagabas/go-udiff v0.4.2
	github.com/coreos/go-systemd/v22 v22.7.0
	github.com/godbus/dbus/v5 v5.2.4
	github.com/google/go-cmp v0.7.0
	github.com/miekg/dns v1.1.73
	github.com/moby/sys/mountinfo v0.7.3
	github.com/systemd/slog-journal v0.1.2
	golang.org/x/net v0.62.0
	golang.org/x/sys v0.50.0
	opensource.internal/templates v0.0.0
	pgregory.net/rapid v1.3.0
)

replace opensource.internal/templates => ../templates
