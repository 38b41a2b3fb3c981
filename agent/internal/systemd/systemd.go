// Package systemd asks systemd about units and has it reload or restart them,
// over D-Bus. Every wait is bounded. An error says what was asked of which
// unit; ErrNoBus and ErrTimeout tell that it is no matter of the unit.
//
// The interface is that of org.freedesktop.systemd1(5).
package systemd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
)

// Errors that concern systemd itself rather than a unit.
var (
	ErrNoBus   = errors.New("no connection to systemd")
	ErrTimeout = errors.New("systemd did not answer in time")
)

// Bounds of the waits, besides those of the caller's context.
const (
	connectTimeout = 3 * time.Second
	callTimeout    = 3 * time.Second
	jobTimeout     = 25 * time.Second
)

// Manager talks to systemd over one connection, made when it is first needed.
// A bus that could not be reached, or fell silent, is not tried again. It is
// safe for concurrent use.
type Manager struct {
	mutex sync.Mutex
	dial  func(context.Context) (*dbus.Conn, error)
	conn  *dbus.Conn
	close context.CancelFunc
	fault error // why there is no connection any more
}

// New returns a manager that is not connected yet. It will use the system bus
// or, for root where there is none, systemd's private socket.
func New() *Manager { return &Manager{dial: dbus.NewWithContext} }

// Close closes the connection, if there is one.
func (m *Manager) Close() { m.giveUp(fmt.Errorf("%w: closed", ErrNoBus)) }

// giveUp closes the connection, if there is one; why is the error of every
// later call.
func (m *Manager) giveUp(why error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.conn != nil {
		m.conn.Close()
		m.close()
	}
	m.conn, m.fault = nil, why
}

// connected returns the connection, which it makes if there is none.
func (m *Manager) connected(ctx context.Context) (*dbus.Conn, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.conn != nil || m.fault != nil {
		return m.conn, m.fault
	}
	// The library ties the connection to the context it was made with.
	lifetime, end := context.WithCancel(context.WithoutCancel(ctx))
	type dialled struct {
		conn *dbus.Conn
		err  error
	}
	done := make(chan dialled, 1)
	go func() {
		conn, err := m.dial(lifetime)
		done <- dialled{conn, err}
	}()
	timeout, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	select {
	case got := <-done:
		if got.err != nil {
			end()
			m.fault = fmt.Errorf("%w: %w", ErrNoBus, got.err)
			return nil, m.fault
		}
		m.conn, m.close = got.conn, end
		return m.conn, nil
	case <-timeout.Done():
		end()
		err := fmt.Errorf("connect: %w", ErrTimeout)
		if ctx.Err() == nil {
			m.fault = err
		}
		return nil, err
	}
}

// call makes one call with the connection, and gives it callTimeout at most.
func (m *Manager) call(ctx context.Context, do func(context.Context, *dbus.Conn) error) error {
	conn, err := m.connected(ctx)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = do(bounded, conn)
	if bounded.Err() == nil {
		return err
	}
	if ctx.Err() == nil {
		m.giveUp(ErrTimeout)
	}
	return ErrTimeout
}

// ActiveState returns the unit's ActiveState: "active", "inactive", "failed",
// "activating"… A unit that does not exist is "inactive".
func (m *Manager) ActiveState(ctx context.Context, unit string) (string, error) {
	state, err := property[string](ctx, m, unit, "Unit", "ActiveState")
	return state, wrap("ask for the state of", unit, err)
}

// LoadState returns the unit's LoadState: "loaded", "not-found", "masked"…
func (m *Manager) LoadState(ctx context.Context, unit string) (string, error) {
	state, err := property[string](ctx, m, unit, "Unit", "LoadState")
	return state, wrap("ask for the load state of", unit, err)
}

// Process is the main process of a unit.
type Process struct {
	PID     int       // 0 if there is none
	Started time.Time // by the wall clock
	// Restarts is how often systemd has started the unit by itself, since it
	// was last told to.
	Restarts int
}

// MainProcess returns the unit's main process.
func (m *Manager) MainProcess(ctx context.Context, unit string) (Process, error) {
	pid, err := property[uint32](ctx, m, unit, "Service", "MainPID")
	if err != nil || pid == 0 {
		return Process{}, wrap("ask for the main process of", unit, err)
	}
	micros, err := property[uint64](ctx, m, unit, "Service", "ExecMainStartTimestamp")
	if err != nil {
		return Process{}, wrap("ask for the start time of", unit, err)
	}
	restarts, err := property[uint32](ctx, m, unit, "Service", "NRestarts")
	if err != nil {
		return Process{}, wrap("ask for the restarts of", unit, err)
	}
	return Process{PID: int(pid), Started: time.UnixMicro(int64(micros)), Restarts: int(restarts)}, nil
}

// HUP sends SIGHUP to the unit's main process.
func (m *Manager) HUP(ctx context.Context, unit string) error {
	err := m.call(ctx, func(ctx context.Context, conn *dbus.Conn) error {
		return conn.KillUnitWithTarget(ctx, unit, dbus.Main, int32(syscall.SIGHUP))
	})
	return wrap("send SIGHUP to", unit, err)
}

// property reads one property of a unit, from its interface of that name.
func property[T any](ctx context.Context, m *Manager, unit, iface, name string) (T, error) {
	var value T
	var found *dbus.Property
	err := m.call(ctx, func(ctx context.Context, conn *dbus.Conn) (err error) {
		if iface == "Unit" {
			found, err = conn.GetUnitPropertyContext(ctx, unit, name)
		} else {
			found, err = conn.GetUnitTypePropertyContext(ctx, unit, iface, name)
		}
		return err
	})
	if err != nil {
		return value, err
	}
	value, ok := found.Value.Value().(T)
	if !ok {
		return value, fmt.Errorf("property %s is not of the documented type but %s", name, found.Value.Signature())
	}
	return value, nil
}

func wrap(act, unit string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", act, unit, err)
}
