package inventory

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"opensource.internal/agent/checkin"
)

// ReservedPorts returns the ports that no transport service gets, neither as
// TCP nor as UDP: SSH, DNS, DHCP and web of the site's host itself, and the
// manager's default.
func ReservedPorts() []int { return []int{22, 53, 67, 68, 80, 443, 3000} }

// Reserved reports whether a port is one of ReservedPorts or of more.
func Reserved(port int, more []int) bool {
	return slices.Contains(ReservedPorts(), port) || slices.Contains(more, port)
}

// DefaultPortRange is where external ports are allocated unless a site says
// otherwise.
const DefaultPortRange = "2000-2999"

// PortRange is an inclusive range of ports.
type PortRange struct{ First, Last int }

// ParsePortRange checks "FIRST-LAST": two ports in ascending order.
func ParsePortRange(s string) (PortRange, error) {
	first, last, found := strings.Cut(s, "-")
	low, errLow := parsePort(first)
	high, errHigh := parsePort(last)
	if !found || errLow != nil || errHigh != nil {
		return PortRange{}, fmt.Errorf("%s is not a range of ports such as %s, from 1 to 65535", quoted(s), DefaultPortRange)
	}
	if low > high {
		return PortRange{}, fmt.Errorf("%s is not a range: its end lies before its start", quoted(s))
	}
	return PortRange{First: low, Last: high}, nil
}

func (r PortRange) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }

// parsePort reads decimal digits only: Atoi would take a sign.
func parsePort(s string) (int, error) {
	s = strings.TrimSpace(s)
	number, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return 0, err
	}
	return int(number), checkin.CheckPort(int(number))
}
