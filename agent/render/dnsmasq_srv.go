package render

import (
	"errors"
	"fmt"

	"opensource.internal/agent/checkin"
)

// srvRecord is an SRV record; its names are full ones.
type srvRecord struct {
	Record Record
	Name   string
	Target string
	Port   int
	source checkin.DNSRecord
	position
}

func (v *dnsmasqView) addSRVRecords(records []checkin.DNSRecord, f Facts, left *leftOut) {
	known := map[srvRecord]bool{}
	var before map[Record]checkin.DNSRecord
	if site := f.before().Site; site != nil {
		before = versions(site.DNSRecords, recordOfSRV)
	}
	for i, r := range records {
		v.addSRVRecord(r, position(i), before, known, left)
	}
	left.keepPrevious()
	inOrder(v.SRVRecords)
}

func (v *dnsmasqView) addSRVRecord(wanted checkin.DNSRecord, at position, before map[Record]checkin.DNSRecord, known map[srvRecord]bool, left *leftOut) {
	record := recordOfSRV(wanted)
	add := func(r checkin.DNSRecord, srv srvRecord) {
		srv.Record, srv.source, srv.position = record, r, at
		v.SRVRecords = append(v.SRVRecords, srv)
	}
	srv, err := v.parseSRVRecord(wanted)
	if err == nil && known[srv] {
		err = fmt.Errorf("the record is there twice: %s to port %d of %s", srv.Name, srv.Port, srv.Target)
	}
	if err == nil {
		known[srv] = true
	}
	previous := func() bool {
		version, found := before[record.Key()]
		if !found || version == wanted {
			return false
		}
		srv, err := v.parseSRVRecord(version)
		if err != nil || known[srv] {
			return false
		}
		known[srv] = true
		add(version, srv)
		return true
	}
	if left.keep(record, err, previous) {
		add(wanted, srv)
	}
}

func (v *dnsmasqView) parseSRVRecord(r checkin.DNSRecord) (srvRecord, error) {
	var errType, errTarget error
	if r.Type != "SRV" {
		errType = fmt.Errorf("%s is not a record type that is managed: SRV", shown(r.Type))
	}
	name, errName := checkin.ParseServiceName(r.Name)
	if errName == nil {
		name, errName = checkin.ParseServiceName(name + "." + v.Domain)
	}
	target, errTarget := checkin.ParseLabel(r.Target)
	if errTarget == nil && !v.containers[target].IsValid() {
		errTarget = fmt.Errorf("%s is no container of the site with a name and an address", target)
	}
	if err := errors.Join(
		field("type", errType), field("name", errName), field("target", errTarget),
		field("port", checkin.CheckPort(r.Port)),
	); err != nil {
		return srvRecord{}, err
	}
	return srvRecord{Name: name, Target: target + "." + v.Domain, Port: r.Port}, nil
}

func recordOfSRV(r checkin.DNSRecord) Record {
	return Record{Kind: checkin.KindSRV, ID: r.ID, Name: shown(r.Name)}
}
