//go:build e2e

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"opensource.internal/e2e/internal/network"
)

// dhcpScript is what udhcpc(1) calls to configure its interface.
const dhcpScript = `#!/bin/sh
[ "$1" = bound ] || [ "$1" = renew ] || exit 0
ip addr flush dev "$interface"
ip addr add "$ip/$mask" dev "$interface"
ip route add default via "$router"
echo "address=$ip router=$router dns=$dns domain=$domain lease=$lease"
`

// takeLease runs a real DHCP client in a namespace and returns what it got.
func takeLease(t testing.TB, namespace string) (string, error) {
	t.Helper()
	script := filepath.Join(t.TempDir(), "bound")
	if err := os.WriteFile(script, []byte(dhcpScript), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := network.Output(namespace, "udhcpc", "-i", "eth0", "-f", "-q", "-n", "-t", "5", "-T", "1", "-s", script)
	if err != nil {
		return "", fmt.Errorf("udhcpc: %w: %s", err, out)
	}
	return out, nil
}

// serveHTTP serves pages that say which port they come from and with which
// headers the request arrived, and upgrades to an echo of lines.
func serveHTTP(t testing.TB, namespace, address string) {
	t.Helper()
	listener := network.Listen(t, namespace, address)
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "websocket" {
			upgrade(w)
			return
		}
		fmt.Fprintf(w, "backend %s host=%s proto=%s for=%s\n", address, r.Host, r.Header.Get("X-Forwarded-Proto"), r.Header.Get("X-Forwarded-For"))
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
}

// upgrade answers as a WebSocket server does (RFC 6455 section 4.2.2) and then
// echoes lines; a proxy does not look at frames.
func upgrade(w http.ResponseWriter) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
	echoLines(buffered.Reader, conn)
}

// serveTCP echoes lines.
func serveTCP(t testing.TB, namespace, address string) {
	t.Helper()
	listener := network.Listen(t, namespace, address)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				echoLines(bufio.NewReader(conn), conn)
			}()
		}
	}()
}

func echoLines(from *bufio.Reader, to io.Writer) {
	for {
		line, err := from.ReadString('\n')
		if err != nil {
			return
		}
		if _, err := io.WriteString(to, "echo "+line); err != nil {
			return
		}
	}
}

// serveUDP echoes datagrams.
func serveUDP(t testing.TB, namespace, address string) {
	t.Helper()
	conn := network.ListenPacket(t, namespace, address)
	go func() {
		buffer := make([]byte, 2048)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(append([]byte("echo "), buffer[:n]...), from)
		}
	}()
}

// line is an open connection that echoes lines.
type line struct {
	net.Conn
	reader *bufio.Reader
}

// say sends a line and wants it back.
func (l line) say(text string) error {
	if err := l.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	if _, err := io.WriteString(l, text+"\n"); err != nil {
		return err
	}
	answer, err := l.reader.ReadString('\n')
	if err != nil {
		return err
	}
	if strings.TrimSpace(answer) != "echo "+text {
		return fmt.Errorf("said %q, heard %q", text, answer)
	}
	return nil
}

// sayOnce opens a connection, says a line and hangs up.
func sayOnce(protocol, address, text string) error {
	conn, err := net.DialTimeout(protocol, address, 5*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	return line{conn, bufio.NewReader(conn)}.say(text)
}
