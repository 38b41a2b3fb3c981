package dashboard

import (
	"fmt"
	"strings"
	"testing"
)

func TestALongMessageIsFolded(t *testing.T) {
	many := strings.Repeat("x\n", 8)
	for text, want := range map[string]string{
		"":                              "",
		"one line":                      "one line",
		many:                            many,
		many + "y":                      strings.Repeat("x\n", 7) + "…\ny",
		strings.Repeat("ü", 4000):       strings.Repeat("ü", 148) + "…",
		strings.Repeat("y", maxMessage): strings.Repeat("y", maxMessage),
	} {
		if short, whole := gist(text); short != want || whole != (short == text) {
			t.Errorf("%d bytes come to %q, whole: %v", len(text), short, whole)
		}
	}
}

// TestWhatMattersOfALongMessage: a service that dies writes a journal of which a
// few lines say why.
func TestWhatMattersOfALongMessage(t *testing.T) {
	var lines []string
	for i := range 120 {
		lines = append(lines, fmt.Sprintf("dnsmasq: read /var/lib/dnsmasq/hosts - %d names", i))
	}
	lines[0] = "it came alive and did not last: 1.8s later dnsmasq.service is failed"
	lines[60] = "dnsmasq: bad address at /var/lib/dnsmasq/hosts line 31"
	lines[90] = "dnsmasq: failed to create listening socket for port 53: Address already in use"
	lines[119] = "going back to the previous configuration: job failed (dnsmasq.service)"
	short, whole := gist(strings.Join(lines, "\n"))
	if whole || strings.Count(short, "\n") > 2*maxMessageLines {
		t.Errorf("%d lines: %q", strings.Count(short, "\n"), short)
	}
	for _, i := range []int{0, 60, 90, 119} {
		if !strings.Contains(short, lines[i]) {
			t.Errorf("%q is not in %q", lines[i], short)
		}
	}
	if strings.Index(short, lines[60]) > strings.Index(short, lines[90]) {
		t.Errorf("out of order: %q", short)
	}
}
