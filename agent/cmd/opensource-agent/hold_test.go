package main

import (
	"bytes"
	"strings"
	"testing"

	"opensource.internal/agent/internal/pass"
)

func TestHoldAndRelease(t *testing.T) {
	root := t.TempDir()
	for _, step := range []struct {
		name           string
		args           string
		want           pass.Code
		stdout, stderr string // a part of it; empty means empty
	}{
		{"nothing is held", "hold", pass.Settled, "no service is held\n", ""},
		{"unknown service", "hold apache --for 2h", pass.Usage, "", `"apache" is no managed service: say nginx or dnsmasq`},
		{"too long", "hold nginx --for 31d", pass.Usage, "", "--for: a service is held for a second at least, and for 30 days (30d) at most"},
		{"less than no time", "hold nginx --for -5m", pass.Usage, "", "--for: a service is held for a second at least"},
		{"joined", "hold nginx --for=-5m", pass.Usage, "", "--for: a service is held for a second at least"},
		{"how long?", "hold nginx --for", pass.Usage, "", "--for: how long?"},
		{"no time", "hold nginx --for soon", pass.Usage, "", `"soon" is not a time such as 90m, 2h or 3d`},
		{"a reason without a service", "hold --reason x", pass.Usage, "", "which service?"},
		{"a time without a service", "hold --for 1h", pass.Usage, "", "which service?"},
		{"no time at all", "hold nginx --for 0s", pass.Usage, "", "a second at least"},
		{"hold", "hold nginx --for 2h --reason moving", pass.Settled, " by alice: moving\n", ""},
		{"hold the other", "hold dnsmasq --for 3d", pass.Settled, "dnsmasq is held until ", ""},
		{"list", "hold", pass.Settled, "\nnginx is held until ", ""},
		{"release what?", "release", pass.Usage, "", "--all"},
		{"release what of the two?", "release nginx --all", pass.Usage, "", "nginx or --all, not both"},
		{"release an unknown one", "release apache", pass.Usage, "", "nginx or dnsmasq"},
		{"release", "release nginx", pass.Settled, "nginx is released", ""},
		{"release again", "release nginx", pass.Settled, "nginx is not held", ""},
		{"release all", "release --all", pass.Settled, "dnsmasq is released", ""},
		{"all is released", "hold", pass.Settled, "no service is held\n", ""},
	} {
		t.Run(step.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			args := append([]string{"--root", root}, strings.Fields(step.args)...)
			if got := runWith(args, []string{"SUDO_USER=alice"}, &stdout, &stderr); got != step.want {
				t.Errorf("exit status %d, want %d", got, step.want)
			}
			for _, stream := range []struct{ got, want string }{{stdout.String(), step.stdout}, {stderr.String(), step.stderr}} {
				if !strings.Contains(stream.got, stream.want) || stream.want == "" && stream.got != "" {
					t.Errorf("got %q, want %q", stream.got, stream.want)
				}
			}
		})
	}
}
