package preflight

import (
	"context"
	"os"
	"strings"

	"opensource.internal/agent/internal/services"
)

// nginxProgram tells which nginx there is and what can be rendered for it.
func nginxProgram(_ context.Context, o *Options) []Finding {
	info := o.Host.Host.NGINX
	if info == nil {
		return notInstalled(o, "nginx")
	}
	found := list(ok("version %s", info.Version))
	if info.Stream {
		found = append(found, ok("has the stream module, for TCP and UDP services"))
	} else {
		found = append(found, o.missingStream())
	}
	wanted := o.Snapshot != nil && o.Snapshot.NGINX.HTTP3
	switch {
	case info.HTTP3:
		found = append(found, ok("can do HTTP/3"))
	case wanted:
		found = append(found, warn("nginx of Debian 13 can", "it cannot do HTTP/3, which is switched on for this site"))
	default:
		found = append(found, ok("cannot do HTTP/3, which is not asked for"))
	}
	return found
}

// missingStream matters as much as there are services that need it.
func (o *Options) missingStream() Finding {
	const fix = "apt-get install libnginx-mod-stream"
	if o.Snapshot != nil && len(o.Snapshot.NGINX.StreamServices) > 0 {
		return fail(fix, "the stream module is missing: %d TCP and UDP services are left out", len(o.Snapshot.NGINX.StreamServices))
	}
	return warn(fix, "the stream module is missing: TCP and UDP services will be left out")
}

func dnsmasqProgram(_ context.Context, o *Options) []Finding {
	if o.Host.Host.DNSMasq == nil {
		return notInstalled(o, "dnsmasq")
	}
	return list(ok("version %s", o.Host.Host.DNSMasq.Version))
}

// notInstalled tells why nothing is known of a program. The Debian package has
// its name.
func notInstalled(o *Options, name string) []Finding {
	for _, warning := range o.Host.Warnings {
		if strings.HasPrefix(warning.Error(), "ask "+name+" ") {
			return list(fail("apt-get install --reinstall "+name, "%v", warning))
		}
	}
	return list(fail("apt-get install "+name, "it is not installed"))
}

// ipv6 tells whether nginx can listen on IPv6.
func ipv6(_ context.Context, o *Options) []Finding {
	if o.Host.Host.IPv6 {
		return list(ok("works"))
	}
	return list(ok("is off on this host: nginx listens on IPv4 alone"))
}

// nginxConfiguration has nginx test its live files, with the drop-ins of others
// in them.
func nginxConfiguration(ctx context.Context, o *Options) []Finding {
	if o.Host.Host.NGINX == nil {
		return nil // told of above
	}
	return o.test(ctx, "nginx", o.Facts.Paths.NGINXConf, services.TestNGINX)
}

func dnsmasqConfiguration(ctx context.Context, o *Options) []Finding {
	if o.Host.Host.DNSMasq == nil {
		return nil
	}
	return o.test(ctx, "dnsmasq", o.Facts.Paths.DNSMasqConf, services.TestDNSMasq)
}

// test has a service's validator look at its live main file. It needs to be
// root, as the service is.
func (o *Options) test(ctx context.Context, name, live string, validate func(context.Context, string) (string, error)) []Finding {
	if o.UserID != 0 {
		return nil
	}
	if _, err := os.Stat(live); os.IsNotExist(err) && !o.Managed[name] {
		return list(ok("there is no %s yet", live))
	}
	text, err := validate(ctx, live)
	return tested(name, text, err)
}

func tested(name, text string, err error) []Finding {
	if err != nil {
		return list(fail("correct the file that is named; sudo opensource-agent restores those that are managed",
			"%s refuses its live files: %v", name, err))
	}
	var warnings []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, "[warn]") {
			warnings = append(warnings, strings.TrimSpace(line))
		}
	}
	if len(warnings) > 0 {
		return list(warn("correct the file that is named", "%s warns of its live files: %s", name, strings.Join(warnings, "; ")))
	}
	return list(ok("%s accepts its live files", name))
}
