package services

import "context"

// TestNGINX has nginx test a live main file, with what it includes, as its unit
// would load it. It returns all that nginx says.
func TestNGINX(ctx context.Context, live string) (string, error) {
	return Output(ctx, nginxTestTimeout, "nginx", "-t", "-g", nginxGlobals, "-c", live)
}

// TestDNSMasq has dnsmasq test a live main file as its unit would load it. It
// returns all that dnsmasq says.
func TestDNSMasq(ctx context.Context, live string) (string, error) {
	args, err := unitArguments(dnsmasqDefaults)
	if err != nil {
		return "", err
	}
	return Output(ctx, dnsmasqTestTimeout, "dnsmasq", append([]string{"--test", "-C", live}, args...)...)
}
