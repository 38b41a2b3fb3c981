package preflight

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// socket is one on which somebody listens, or takes datagrams.
type socket struct {
	protocol string // "tcp" or "udp"
	local    netip.AddrPort
	inode    string
}

// The states in /proc/net/{tcp,udp}, see include/net/tcp_states.h. A UDP
// socket without a peer is "closed".
const (
	tcpListens = "0A"
	udpOpen    = "07"
)

// readSockets returns all listening sockets of this network namespace, as
// proc_net_tcp.rst of the kernel's documentation has them. Where IPv6 is off
// there is no tcp6.
func readSockets(proc string) ([]socket, error) {
	var sockets []socket
	for _, name := range []string{"tcp", "udp", "tcp6", "udp6"} {
		content, err := os.ReadFile(filepath.Join(proc, "net", name))
		if os.IsNotExist(err) && strings.HasSuffix(name, "6") {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the sockets of this host: %w", err)
		}
		for line := range strings.Lines(string(content)) {
			if s, listens := parseSocket(strings.TrimSuffix(name, "6"), strings.Fields(line)); listens {
				sockets = append(sockets, s)
			}
		}
	}
	return sockets, nil
}

// parseSocket reads the fields of a line:
//
//	0: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 12345 ...
func parseSocket(protocol string, fields []string) (socket, bool) {
	if len(fields) < 10 || fields[3] != tcpListens && fields[3] != udpOpen {
		return socket{}, false
	}
	if protocol == "tcp" && fields[3] != tcpListens {
		return socket{}, false
	}
	local, err := parseHexAddress(fields[1])
	if err != nil {
		return socket{}, false
	}
	return socket{protocol, local, fields[9]}, true
}

// parseHexAddress reads "0100007F:0050": words of four bytes in the order of
// the machine, which is little-endian on all that Debian's amd64 and arm64 run on.
func parseHexAddress(text string) (netip.AddrPort, error) {
	address, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	for word := 0; word+4 <= len(raw); word += 4 {
		slices.Reverse(raw[word : word+4])
	}
	number, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return netip.AddrPort{}, err
	}
	addr, valid := netip.AddrFromSlice(raw)
	if !valid {
		return netip.AddrPort{}, fmt.Errorf("%q is not an address", text)
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(number)), nil
}

// process is one that holds a socket.
type process struct {
	pid  int
	name string // as in ps -o comm
	unit string // the systemd unit it belongs to, or empty
}

func (p process) String() string {
	if p.unit == "" {
		return fmt.Sprintf("process %d (%s)", p.pid, p.name)
	}
	return fmt.Sprintf("process %d (%s of %s)", p.pid, p.name, p.unit)
}

// holders returns, by the inode of a socket, the first process that has it
// open. What belongs to others can be seen only by root, and nothing of
// processes outside of this container.
func holders(proc string) map[string]process {
	held := map[string]process{}
	for _, pid := range pids(proc) {
		folder := filepath.Join(proc, strconv.Itoa(pid))
		entries, err := os.ReadDir(filepath.Join(folder, "fd"))
		if err != nil {
			continue // gone, or not ours to see
		}
		for _, entry := range entries {
			target, err := os.Readlink(filepath.Join(folder, "fd", entry.Name()))
			inode, isSocket := strings.CutPrefix(target, "socket:[")
			if err != nil || !isSocket {
				continue
			}
			inode = strings.TrimSuffix(inode, "]")
			if _, known := held[inode]; !known {
				held[inode] = process{pid, readLine(filepath.Join(folder, "comm")), unitOf(folder)}
			}
		}
	}
	return held
}

func pids(proc string) []int {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil
	}
	var pids []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

func readLine(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(content), "\n")
	return line
}

// unitOf finds the unit in the path of a process's control group. Of several
// hierarchies (cgroups(7)) only systemd's own is named by units.
func unitOf(folder string) string {
	content, err := os.ReadFile(filepath.Join(folder, "cgroup"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(content)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		hierarchy, path, _ := strings.Cut(rest, ":")
		if hierarchy != "" && hierarchy != "name=systemd" {
			continue
		}
		for ; len(path) > 1; path = filepath.Dir(path) {
			if name := filepath.Base(path); strings.HasSuffix(name, ".service") || strings.HasSuffix(name, ".scope") {
				return name
			}
		}
	}
	return ""
}
