package services

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/internal/apply"
	"opensource.internal/agent/internal/services/servicestest"
)

func TestBlame(t *testing.T) {
	const candidate, live = "/etc/nginx/.nginx.conf.opensource-agent.new-1", "/etc/nginx/nginx.conf"
	for name, test := range map[string]struct {
		said string
		want apply.Fault
	}{
		"a line of nginx": {
			`nginx: [emerg] unknown directive "x" in ` + candidate + ":3\nnginx: configuration file " + candidate + " test failed",
			apply.Fault{
				Words:   `nginx: [emerg] unknown directive "x" in ` + live + ":3\nnginx: configuration file " + live + " test failed",
				Verdict: `nginx: [emerg] unknown directive "x" in ` + live + ":3",
				Places:  []apply.Place{{File: live, Lines: []int{3}, Words: `nginx: [emerg] unknown directive "x"`}},
			},
		},
		"a warning before": {
			"nginx: [warn] duplicate MIME type in " + candidate + ":1\nnginx: [emerg] host not found in upstream \"a\" in " + candidate + ":7\n",
			apply.Fault{
				Words:   "nginx: [warn] duplicate MIME type in " + live + ":1\nnginx: [emerg] host not found in upstream \"a\" in " + live + ":7\n",
				Verdict: "nginx: [emerg] host not found in upstream \"a\" in " + live + ":7",
				Places:  []apply.Place{{File: live, Lines: []int{7}, Words: `nginx: [emerg] host not found in upstream "a"`}},
			},
		},
		"only a warning has a line": {
			"nginx: [warn] duplicate MIME type in " + candidate + ":1\nnginx: [emerg] cannot load certificate \"/a.crt\"",
			apply.Fault{
				Words:   "nginx: [warn] duplicate MIME type in " + live + ":1\nnginx: [emerg] cannot load certificate \"/a.crt\"",
				Verdict: "nginx: [emerg] cannot load certificate \"/a.crt\"",
			},
		},
		"a drop-in of nginx": {
			"nginx: [emerg] unexpected end of file in /etc/nginx/conf.d/a b.conf:7",
			apply.Fault{
				Words:     "nginx: [emerg] unexpected end of file in /etc/nginx/conf.d/a b.conf:7",
				Verdict:   "nginx: [emerg] unexpected end of file in /etc/nginx/conf.d/a b.conf:7",
				Elsewhere: "/etc/nginx/conf.d/a b.conf",
			},
		},
		"a line of dnsmasq": {
			"dnsmasq: bad SRV record at line 12 of " + candidate,
			apply.Fault{
				Words:   "dnsmasq: bad SRV record at line 12 of " + live,
				Verdict: "dnsmasq: bad SRV record at line 12 of " + live,
				Places:  []apply.Place{{File: live, Lines: []int{12}, Words: "dnsmasq: bad SRV record"}},
			},
		},
		"a drop-in of dnsmasq": {
			"dnsmasq: bad option at line 1 of /etc/dnsmasq.d/x",
			apply.Fault{
				Words:     "dnsmasq: bad option at line 1 of /etc/dnsmasq.d/x",
				Verdict:   "dnsmasq: bad option at line 1 of /etc/dnsmasq.d/x",
				Elsewhere: "/etc/dnsmasq.d/x",
			},
		},
		"a line number beyond all numbers": {
			"nginx: [emerg] x in " + live + ":99999999999999999999",
			apply.Fault{
				Words:   "nginx: [emerg] x in " + live + ":99999999999999999999",
				Verdict: "nginx: [emerg] x in " + live + ":99999999999999999999",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var fault *apply.Fault
			if !errors.As(blame(&verdict{test.said}, candidate, live), &fault) {
				t.Fatal("no fault")
			}
			if diff := cmp.Diff(&test.want, fault); diff != "" {
				t.Error(diff)
			}
		})
	}
	if blame(nil, candidate, live) != nil {
		t.Error("no error became one")
	}
	if err := blame(context.DeadlineExceeded, candidate, live); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a test that was stopped became %v", err)
	}
}

func TestPlacesIn(t *testing.T) {
	got := placesIn([]string{
		"dnsmasq found faults in its files",
		"bad address at /var/lib/dnsmasq/hosts line 3",
		"duplicate dhcp-host IP address 192.0.2.1 at line 2 of /var/lib/dnsmasq/dhcp-hosts",
		"bad address at /var/lib/dnsmasq/hosts line 3",
		"failed to load names from /var/lib/dnsmasq/hosts: Permission denied",
		// As on hosts that speak German, Polish or Romanian.
		"Fehlerhafte Adresse in /var/lib/dnsmasq/hosts Zeile 4",
		"doppelte dhcp-host IP-Adresse 192.0.2.1 in Zeile 5 von /var/lib/dnsmasq/dhcp-hosts",
		"błędny adres w pliku /var/lib/dnsmasq/hosts, w linii 6",
		"adresă greşită în /var/lib/dnsmasq/hosts, linia 7",
		"kann /var/lib/dnsmasq/hosts nicht lesen: Datei oder Verzeichnis nicht gefunden",
	})
	want := []apply.Place{
		{File: "/var/lib/dnsmasq/hosts", Lines: []int{3}, Words: "bad address"},
		{File: "/var/lib/dnsmasq/dhcp-hosts", Lines: []int{2}, Words: "duplicate dhcp-host IP address 192.0.2.1"},
		{File: "/var/lib/dnsmasq/hosts", Lines: []int{4}, Words: "Fehlerhafte Adresse"},
		{File: "/var/lib/dnsmasq/dhcp-hosts", Lines: []int{5}, Words: "doppelte dhcp-host IP-Adresse 192.0.2.1"},
		{File: "/var/lib/dnsmasq/hosts", Lines: []int{6}, Words: "błędny adres"},
		{File: "/var/lib/dnsmasq/hosts", Lines: []int{7}, Words: "adresă greşită"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBlamePorts(t *testing.T) {
	servicestest.Need(t)
	holder, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	defer holder.Close()
	port := strconv.Itoa(holder.Addr().(*net.TCPAddr).Port)
	conf := filepath.Join(t.TempDir(), "nginx.conf")
	must(t, os.WriteFile(conf, []byte(strings.ReplaceAll(`http {
    server { listen 80; }
    # listen PORT;
    server_name 1.PORT;
}
stream {
    server { listen 192.0.2.1:PORT; }
    server {
        listen PORT udp reuseport;
        listen [::]:PORT udp;
    }
    server { listen PORT0; }
}
`, "PORT", port)), 0o600))
	said := func(ports ...string) error {
		var words []string
		for _, port := range ports {
			words = append(words, "2026/12/01 10:00:00 [emerg] 7#7: bind() to 0.0.0.0:"+port+" failed (98: Address already in use)",
				"2026/12/01 10:00:00 [emerg] 7#7: bind() to [::]:"+port+" failed (98: Address already in use)")
		}
		return errors.New(strings.Join(words, "\n"))
	}
	var fault *apply.Fault
	err = said(port, "80", "443")
	if !errors.As(blamePorts(err, "/etc/nginx/nginx.conf", conf), &fault) {
		t.Fatal("no fault")
	}
	want := &apply.Fault{Words: err.Error(), Places: []apply.Place{
		{File: "/etc/nginx/nginx.conf", Lines: []int{7}, Words: "bind() to 0.0.0.0:" + port + " failed (98: Address already in use)"},
		{File: "/etc/nginx/nginx.conf", Lines: []int{2}, Words: "bind() to 0.0.0.0:80 failed (98: Address already in use)"},
	}}
	if diff := cmp.Diff(want, fault); diff != "" {
		t.Error(diff)
	}

	holder6, err := net.Listen("tcp6", "[::]:0")
	if err != nil {
		t.Skipf("NOT TESTED: no IPv6: %v", err)
	}
	defer holder6.Close()
	port = strconv.Itoa(holder6.Addr().(*net.TCPAddr).Port)
	must(t, os.WriteFile(conf, []byte(strings.ReplaceAll("listen [::]:PORT udp;\nlisten [::]:PORT;\n", "PORT", port)), 0o600))
	err = errors.New("bind() to [::]:" + port + " failed (98: Address already in use)")
	if !errors.As(blamePorts(err, conf, conf), &fault) || !slices.Equal(fault.Places[0].Lines, []int{2}) {
		t.Errorf("held for IPv6 and TCP alone: %+v", fault)
	}
}

func TestBlamePortsOfNobody(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "nginx.conf")
	must(t, os.WriteFile(conf, []byte("listen 80;\n"), 0o600))
	said := func(port string) error {
		return errors.New("bind() to 0.0.0.0:" + port + " failed (98: Address already in use)")
	}
	for name, err := range map[string]error{"nothing": nil, "another fault": errors.New("x"), "a port of a drop-in": said("443")} {
		if got := blamePorts(err, conf, conf); !errors.Is(got, err) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
