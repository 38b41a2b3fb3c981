//go:build e2e

// Package network lays cables between machines: a switch for each site, a
// network namespace for each machine, and addresses of RFC 5737 that exist only
// in the sandbox.
package network

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Switch is the network of one site. The tests themselves are its gateway and
// forward between switches.
type Switch struct {
	Subnet  netip.Prefix
	Gateway netip.Addr // the first address of the subnet
	name    string
}

// NewSwitch makes a network. Names have at most 12 characters, as those of
// interfaces are short. It goes with the test.
func NewSwitch(t testing.TB, name, subnet string) Switch {
	t.Helper()
	s := Switch{Subnet: netip.MustParsePrefix(subnet), name: "sw-" + name}
	s.Gateway = s.Host(1)
	steps(t, [][]string{
		{"link", "add", s.name, "type", "bridge", "forward_delay", "0"},
		{"addr", "add", s.withBits(s.Gateway), "dev", s.name},
		{"link", "set", s.name, "up"},
	})
	t.Cleanup(func() { _ = ip("link", "del", s.name) })
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		t.Fatalf("forward between switches: %v", err)
	}
	return s
}

// Host returns the address of the subnet's nth host.
func (s Switch) Host(n int) netip.Addr {
	address := s.Subnet.Addr()
	for range n {
		address = address.Next()
	}
	return address
}

func (s Switch) withBits(address netip.Addr) string {
	return netip.PrefixFrom(address, s.Subnet.Bits()).String()
}

// Plug makes a network namespace whose eth0 is plugged into the switch. The
// address may be the zero one, for a host that asks DHCP, and mac empty.
func (s Switch) Plug(t testing.TB, name string, address netip.Addr, mac string) {
	t.Helper()
	port := "p-" + name
	plan := [][]string{
		{"netns", "add", name},
		{"link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name},
		{"link", "set", port, "master", s.name, "up"},
		{"-n", name, "link", "set", "lo", "up"},
	}
	if mac != "" {
		plan = append(plan, []string{"-n", name, "link", "set", "eth0", "address", mac})
	}
	plan = append(plan, []string{"-n", name, "link", "set", "eth0", "up"})
	if address.IsValid() {
		plan = append(plan,
			[]string{"-n", name, "addr", "add", s.withBits(address), "dev", "eth0"},
			[]string{"-n", name, "route", "add", "default", "via", s.Gateway.String()})
	}
	steps(t, plan)
	t.Cleanup(func() { _ = ip("netns", "del", name) })
}

func steps(t testing.TB, plan [][]string) {
	t.Helper()
	for _, step := range plan {
		if err := ip(step...); err != nil {
			t.Fatalf("lay the network: %v", err)
		}
	}
}

func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Command prepares a command in the network of a namespace, with this
// machine's files.
func Command(ctx context.Context, namespace, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", namespace, name}, args...)...)
}

// Output runs a command in the network of a namespace, within 30 s.
func Output(namespace, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out, err := Command(ctx, namespace, name, args...).CombinedOutput()
	return string(out), err
}

// Inside calls open on a thread that is in the namespace: sockets opened there
// stay there.
func Inside(namespace string, open func() error) error {
	done := make(chan error)
	go func() {
		// Never unlocked: the thread ends with its goroutine, and nobody
		// else finds itself in that network.
		runtime.LockOSThread()
		done <- inNamespace(namespace, open)
	}()
	return <-done
}

func inNamespace(namespace string, open func() error) error {
	file, err := os.Open("/run/netns/" + namespace)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter network namespace %s: %w", namespace, err)
	}
	return open()
}

// Listen opens a TCP listener in a namespace. It closes with the test.
func Listen(t testing.TB, namespace, address string) net.Listener {
	t.Helper()
	var listener net.Listener
	err := Inside(namespace, func() (err error) {
		listener, err = net.Listen("tcp", address)
		return err
	})
	if err != nil {
		t.Fatalf("listen on %s in %s: %v", address, namespace, err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}

// ListenPacket opens a UDP socket in a namespace. It closes with the test.
func ListenPacket(t testing.TB, namespace, address string) net.PacketConn {
	t.Helper()
	var conn net.PacketConn
	err := Inside(namespace, func() (err error) {
		conn, err = net.ListenPacket("udp", address)
		return err
	})
	if err != nil {
		t.Fatalf("listen on %s in %s: %v", address, namespace, err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}
