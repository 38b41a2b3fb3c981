package manifest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Format is how a manifest is written.
type Format string

// The formats.
const (
	YAML Format = "yaml"
	JSON Format = "json"
)

// Read returns the manifests of a file, one for each document. The error is a
// *FaultsError if the file cannot be read at all. What else is wrong is in the
// manifests, and told by Apply together with what it finds.
func Read(file string, data []byte, format Format) ([]*Manifest, error) {
	if len(data) > MaxSize {
		return nil, oneFault(Place{File: file}, "%d bytes, more than %d", len(data), MaxSize)
	}
	documents, err := parse(file, WithoutBOM(data), format)
	if err != nil {
		return nil, err
	}
	if len(documents) == 0 {
		return nil, oneFault(Place{File: file}, "there is no document in it")
	}
	manifests := make([]*Manifest, 0, len(documents))
	for _, document := range documents {
		d := &decoder{}
		m := d.manifest(document)
		m.faults = d.faults
		manifests = append(manifests, m)
	}
	return manifests, nil
}

// WithoutBOM is a text without the mark that some editors put before UTF-8.
func WithoutBOM(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\ufeff")) }

func parse(file string, data []byte, format Format) ([]*value, error) {
	if format == JSON {
		return readJSON(file, data)
	}
	return readYAML(file, data)
}

// decoder turns values into records and gathers the faults.
type decoder struct{ faults }

// setter takes the value of one field.
type setter func(d *decoder, path string, v *value)

func (d *decoder) manifest(document *value) *Manifest {
	m := &Manifest{}
	var site *value
	d.fields(&m.record, document, "", map[string]setter{
		"version":         d.version,
		"site":            func(_ *decoder, _ string, v *value) { site = v },
		"externalDomains": list(&m.Domains, (*decoder).domain),
		"nodes":           list(&m.Nodes, (*decoder).node),
		"containers":      list(&m.Containers, (*decoder).container),
	})
	if document.kind != kindMapping {
		return m
	}
	if _, found := m.fields["version"]; !found {
		d.add(m.at, "version", "is required: %d is the version of this format", Version)
	}
	if site != nil && site.kind != kindNull {
		m.Site = d.site("site", site)
	} else if len(m.Nodes)+len(m.Containers) > 0 {
		d.add(m.at, "site", "is required where there are nodes or containers: at least its name")
	}
	return m
}

func (d *decoder) version(_ *decoder, path string, v *value) {
	var version int
	number(&version)(d, path, v)
	if version != Version && version != 0 {
		d.add(v.at, path, "%d is not a version that this program knows: %d", version, Version)
	}
}

func (d *decoder) site(path string, v *value) *Site {
	s := &Site{}
	d.fields(&s.record, v, path, map[string]setter{
		"name":           text(&s.Name),
		"internalDomain": text(&s.InternalDomain),
		"dhcpRange":      text(&s.DHCPRange),
		"subnetMask":     text(&s.SubnetMask),
		"gateway":        text(&s.Gateway),
		"dnsForwarders":  text(&s.DNSForwarders),
		"externalIp":     text(&s.ExternalIP),
		"volumesRoot":    text(&s.VolumesRoot),
		"portRange":      text(&s.PortRange),
		"publishing":     text(&s.Publishing),
	})
	d.check(&s.record, s.Normalise)
	return s
}

func (d *decoder) domain(path string, v *value) *Domain {
	r := &Domain{}
	d.fields(&r.record, v, path, map[string]setter{
		"name":        text(&r.Name),
		"authServer":  text(&r.AuthServer),
		"defaultSite": text(&r.DefaultSite),
	})
	d.check(&r.record, r.Normalise)
	return r
}

func (d *decoder) node(path string, v *value) *Node {
	r := &Node{}
	d.fields(&r.record, v, path, map[string]setter{
		"name":        text(&r.Name),
		"ipv4Address": text(&r.IPv4Address),
		"type":        text(&r.Type),
	})
	d.check(&r.record, r.Normalise)
	return r
}

func (d *decoder) container(path string, v *value) *Container {
	r := &Container{}
	d.fields(&r.record, v, path, map[string]setter{
		"hostname":    text(&r.Hostname),
		"node":        text(&r.Node),
		"owner":       text(&r.Owner),
		"ipv4Address": text(&r.IPv4Address),
		"macAddress":  text(&r.MACAddress),
		"services":    list(&r.Services, (*decoder).service),
		"volumes":     list(&r.Volumes, (*decoder).volume),
	})
	if r.Node != "" {
		r.NodeID = pending
	}
	d.check(&r.record, r.Normalise)
	return r
}

// pending stands for the id of a record that the plan has still to find.
const pending = int64(1) << 62

func (d *decoder) service(path string, v *value) *Service {
	r := &Service{}
	d.fields(&r.record, v, path, map[string]setter{
		"type":             func(d *decoder, path string, v *value) { text((*string)(&r.Type))(d, path, v) },
		"internalPort":     number(&r.InternalPort),
		"externalHostname": text(&r.ExternalHostname),
		"externalDomain":   text(&r.Domain),
		"backendProtocol":  text(&r.BackendProtocol),
		"authRequired":     boolean(&r.AuthRequired),
		"protocol":         text(&r.Protocol),
		"externalPort":     number(&r.ExternalPort),
		"recordType":       text(&r.RecordType),
		"dnsName":          text(&r.DNSName),
	})
	if r.Domain != "" {
		domain := pending
		r.ExternalDomainID = &domain
	}
	d.check(&r.record, func() error { return r.Normalise(nil) })
	return r
}

func (d *decoder) volume(path string, v *value) *Volume {
	r := &Volume{}
	d.fields(&r.record, v, path, map[string]setter{
		"name":      text(&r.Name),
		"mountPath": text(&r.MountPath),
		"mode":      text(&r.Mode),
	})
	d.check(&r.record, r.Normalise)
	return r
}

// check adds what is wrong with a record's values. Those are then taken for
// absent, so that the rest of the record can be tried all the same, and with it
// what belongs to it: whoever mends a file wants to know everything at once.
func (d *decoder) check(r *record, normalise func() error) {
	if r.broken {
		return
	}
	d.of(r, normalise())
	for field, told := range r.told {
		if clear := r.known[field]; told && clear != nil {
			clear(d, "", &value{kind: kindNull})
		}
	}
	r.broken = normalise() != nil
}

// fields reads a mapping into a record.
func (d *decoder) fields(r *record, v *value, path string, known map[string]setter) {
	r.path, r.at, r.known = path, v.at, known
	r.fields, r.told = map[string]Place{}, map[string]bool{}
	if v.kind != kindMapping {
		r.broken = true
		d.add(v.at, path, "has to be a mapping of fields, not %s", v.kind)
		return
	}
	for i, field := range v.fields {
		set, found := known[field.name]
		full := field.name
		if path != "" {
			full = path + "." + field.name
		}
		switch {
		case slices.ContainsFunc(v.fields[:i], func(before member) bool { return before.name == field.name }):
			d.add(field.at, full, "is given twice")
			continue
		case !found:
			hint, meant := unknown(field.name, known)
			d.add(field.at, full, "%s", hint)
			r.told[meant] = true // that it is missing would only repeat this
			continue
		}
		r.fields[field.name] = field.value.at
		before := len(d.faults)
		set(d, full, field.value)
		// A list's own records have faults of their own.
		r.told[field.name] = slices.ContainsFunc(d.faults[before:], func(f Fault) bool { return f.Path == full })
	}
}

// elsewhere says what became of fields that the API has, and manifests have not.
var elsewhere = map[string]string{
	"id":               "records are known by their names here: leave it out",
	"nodeId":           "records are known by their names here: write node: NAME",
	"externalDomainId": "records are known by their names here: write externalDomain: NAME",
	"defaultSiteId":    "records are known by their names here: write defaultSite: NAME",
	"hostPath":         "is decided when the volume is created and stays: leave it out",
	"uid":              "is decided when the volume is created and stays: leave it out",
	"gid":              "is decided when the volume is created and stays: leave it out",
	"status":           "is told by the site's agent: leave it out",
	"apiVersion":       "write version: 1",
}

// unknown says what to do about a field that there is not, and which one may have
// been meant.
func unknown(name string, known map[string]setter) (hint, meant string) {
	if hint, found := elsewhere[name]; found {
		return hint, named(name)
	}
	names := slices.Sorted(maps.Keys(known))
	if similar := nearest(name, names); similar != "" {
		return fmt.Sprintf("there is no such field; did you mean %s?", similar), similar
	}
	return "there is no such field: one of " + strings.Join(names, ", "), ""
}

func (k kind) String() string {
	return map[kind]string{
		kindNull: "nothing", kindPlain: "a word or number", kindText: "a text", kindNumber: "a number", kindBool: "true or false",
		kindList: "a list", kindMapping: "a mapping of fields",
	}[k]
}

// text takes a text. Without quotes, YAML would take some names for something
// else (no, 007, 1e3): here they are what is written.
func text(into *string) setter {
	return func(d *decoder, path string, v *value) {
		switch v.kind {
		case kindNull:
			*into = ""
		case kindText, kindPlain:
			*into = v.text
		default:
			d.add(v.at, path, "has to be a text, not %s", v.kind)
		}
	}
}

// number takes a whole number.
func number(into *int) setter {
	return func(d *decoder, path string, v *value) {
		if v.kind == kindNull {
			*into = 0
			return
		}
		n, err := strconv.Atoi(v.text)
		switch {
		case v.kind == kindText && err == nil:
			d.add(v.at, path, "has to be a number: write it without quotes")
		case v.kind != kindPlain && v.kind != kindNumber:
			d.add(v.at, path, "has to be a number, not %s", v.kind)
		case err != nil || strconv.Itoa(n) != v.text || n == 0:
			d.add(v.at, path, "%q is not a whole number above 0", cut(v.text))
		default:
			*into = n
		}
	}
}

// boolean takes true or false.
func boolean(into *bool) setter {
	return func(d *decoder, path string, v *value) {
		switch {
		case v.kind == kindNull:
			*into = false
		case v.kind != kindPlain && v.kind != kindBool:
			d.add(v.at, path, "has to be true or false, not %s", v.kind)
		case v.text != "true" && v.text != "false":
			d.add(v.at, path, "%q is neither true nor false", cut(v.text))
		default:
			*into = v.text == "true"
		}
	}
}

// list takes a list of records.
func list[R any](into *[]*R, read func(d *decoder, path string, v *value) *R) setter {
	return func(d *decoder, path string, v *value) {
		switch v.kind {
		case kindNull: // none
		case kindList:
			for i, item := range v.items {
				*into = append(*into, read(d, fmt.Sprintf("%s[%d]", path, i), item))
			}
		default:
			d.add(v.at, path, "has to be a list, not %s", v.kind)
		}
	}
}

// cut shows the beginning of a value that may be long.
func cut(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}

// nearest returns the name that somebody may have meant, or "".
func nearest(name string, names []string) string {
	best, shortest := "", min(3, 1+len(name)/3)
	for _, candidate := range names {
		if distance := editDistance(strings.ToLower(name), strings.ToLower(candidate)); distance < shortest || distance == shortest && best == "" {
			best, shortest = candidate, distance
		}
	}
	return best
}

// editDistance is how many characters have to be put in, left out or replaced to
// make b of a.
func editDistance(a, b string) int {
	if len(a) > 100 || len(b) > 100 {
		return max(len(a), len(b))
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
