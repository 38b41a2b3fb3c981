package render

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"path"
	"strings"

	"opensource.internal/agent/checkin"
)

// sentinelDomain is the domain of sentinel names. It exists nowhere (RFC 6761
// section 6.4), and dnsmasq forwards no question about it.
const sentinelDomain = "opensource-agent.invalid"

// DNSMasqSentinel returns the name that dnsmasq answers with 127.0.0.1 if it
// has loaded the hosts file of the given revision.
func DNSMasqSentinel(revision string) string {
	const half = sha256.Size // a label has at most 63 characters, a revision 64
	if len(revision) > half {
		revision = revision[:half]
	}
	return "revision-" + revision + "." + sentinelDomain
}

// DNSMasq renders dnsmasq.conf and its side files. Records that cannot be
// served are left out, each with its reason. The result is Skipped, naming
// what is missing, until the site has all its network fields; one of them
// that is wrong is an error that begins with its name.
func DNSMasq(s checkin.Snapshot, f Facts, t *Templates) (Result, error) {
	if s.Site == nil {
		return Result{Skipped: "dnsmasq is not managed: the site does not exist yet"}, nil
	}
	if !s.Site.HasNetwork() {
		return Result{Skipped: checkin.NoNetwork}, nil
	}
	if missing := s.Site.MissingNetworkFields(); len(missing) > 0 {
		return Result{Skipped: "dnsmasq is not managed: not set are site." + strings.Join(missing, ", site.")}, nil
	}
	v, left, err := newDNSMasqView(*s.Site, f)
	if err != nil {
		return Result{}, err
	}
	files, err := renderDNSMasq(v, t)
	if err != nil {
		return Result{}, err
	}
	revision, err := stampDNSMasq(files)
	if err != nil {
		return Result{}, err
	}
	site := v.inForce.of(*s.Site, v.SRVRecords)
	inForce := s
	inForce.Site = &site
	return Result{Files: files, LeftOut: left, InForce: inForce, Revision: revision}, nil
}

// renderDNSMasq renders all files, in the order they are committed: the main
// file last.
func renderDNSMasq(v *dnsmasqView, t *Templates) ([]File, error) {
	var files []File
	for _, name := range []string{"dhcp-hosts", "hosts", "dhcp-opts", "servers"} {
		files = append(files, File{Path: path.Join(v.Paths.DNSMasqDir, name)})
	}
	files = append(files, File{Path: v.Paths.DNSMasqConf})
	for i := range files {
		name := path.Base(files[i].Path)
		if i == len(files)-1 {
			name = "dnsmasq.conf"
		}
		out, err := t.execute(&t.dnsmasq, "dnsmasq/"+name+".tmpl", v)
		if err != nil {
			return nil, err
		}
		files[i].Content, files[i].Lines, files[i].Mode = out.content, out.lines, 0o644
	}
	return files, nil
}

// stampDNSMasq computes the revision over all files and writes its sentinel in
// the place of the blank one.
func stampDNSMasq(files []File) (string, error) {
	sum := sha256.New()
	for _, f := range files {
		sum.Write(f.Content)
		sum.Write([]byte{0})
	}
	revision := hexSum(sum)
	blank, sentinel := []byte(DNSMasqSentinel(blankRevision)), []byte(DNSMasqSentinel(revision))
	stamped := false
	for i := range files {
		stamped = stamped || bytes.Contains(files[i].Content, blank)
		files[i].Content = bytes.ReplaceAll(files[i].Content, blank, sentinel)
	}
	if !stamped {
		return "", errors.New("render template dnsmasq/hosts.tmpl: it does not write .Sentinel, without which nobody can tell what dnsmasq runs")
	}
	return revision, nil
}
