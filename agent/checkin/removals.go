package checkin

import (
	"fmt"
	"strings"
)

// Removed names the records of a kind that a snapshot had before and does not
// have after, and says of how many. A record that was renamed is still there,
// and so is one of a manager that has numbered its records anew. Where one of
// the two says nothing about the kind, nothing is removed.
func Removed(kind GuardKind, before, after Snapshot) (names []string, total int) {
	old, known := guarded(kind, before)
	kept, managed := guarded(kind, after)
	if !known || !managed {
		return nil, 0
	}
	there := map[string]bool{}
	for _, record := range kept {
		for _, mark := range record.marks {
			there[mark] = true
		}
	}
	for _, record := range old {
		if !record.in(there) {
			names = append(names, record.name)
		}
	}
	return names, len(old)
}

// guardedRecord is a record with everything it can be recognised by: it is the
// same as another if one mark of both is.
type guardedRecord struct {
	name  string // for people
	marks []string
}

func (r guardedRecord) in(there map[string]bool) bool {
	for _, mark := range r.marks {
		if there[mark] {
			return true
		}
	}
	return false
}

// guarded returns the records of a kind; managed is false if the snapshot says
// nothing about them.
func guarded(kind GuardKind, s Snapshot) (records []guardedRecord, managed bool) {
	if kind == GuardReservations {
		return guardedReservations(s)
	}
	return guardedServices(s), true
}

// guardedServices recognises a service by its public name or port, and by its id
// as long as it leads to the same container: another manager has the same ids.
func guardedServices(s Snapshot) []guardedRecord {
	var records []guardedRecord
	add := func(name, kind string, id int64, to Backend) {
		record := guardedRecord{name: name, marks: []string{kind + " " + name}}
		if id != 0 {
			record.marks = append(record.marks, fmt.Sprintf("%s id %d to %s", kind, id, to.IPv4Address))
		}
		records = append(records, record)
	}
	for _, h := range s.NGINX.HTTPServices {
		add(strings.ToLower(h.ExternalHostname+"."+h.ExternalDomain.Name), KindHTTP, h.ID, h.Container)
	}
	for _, t := range s.NGINX.StreamServices {
		add(fmt.Sprintf("%s port %d", t.Protocol, t.ExternalPort), KindStream, t.ID, t.Container)
	}
	return records
}

// guardedReservations recognises a reservation by the host name of its
// container, and by its hardware address. Without all network fields dnsmasq is
// left as it is, so that nothing is removed.
func guardedReservations(s Snapshot) (records []guardedRecord, managed bool) {
	if s.Site == nil || len(s.Site.MissingNetworkFields()) > 0 {
		return nil, false
	}
	for _, node := range s.Site.Nodes {
		for _, c := range node.Containers {
			if c.MACAddress == "" || c.IPv4Address == "" {
				continue
			}
			name, mac := strings.ToLower(c.Hostname), strings.ToLower(string(c.MACAddress))
			records = append(records, guardedRecord{name: name, marks: []string{"host " + name, "mac " + mac}})
		}
	}
	return records, true
}
