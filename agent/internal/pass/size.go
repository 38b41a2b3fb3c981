package pass

import (
	"encoding/json"
	"fmt"

	"opensource.internal/agent/checkin"
)

// maxBody is the size of a check-in, in bytes, that every manager takes. A
// larger one is refused as a whole, and then nothing is told at all.
const maxBody = 1 << 20

// fitted returns the check-in with as much as fits, the least needed left out
// first. How every service and volume stands is always told.
func fitted(r checkin.Request) checkin.Request {
	for _, shorten := range []func(*checkin.Request){
		func(r *checkin.Request) { r.Volumes = shortened(r.Volumes, 128) },
		func(r *checkin.Request) { r.Probes = failing(r.Probes) },
		func(r *checkin.Request) { r.Services = firstLeftOut(r.Services, 100) },
		func(r *checkin.Request) { r.Volumes = shortened(r.Volumes, 0) },
		func(r *checkin.Request) { r.Probes = nil },
		func(r *checkin.Request) { r.Certificates = nil },
	} {
		// What cannot be encoded shows when it is sent.
		if body, err := json.Marshal(r); err != nil || len(body) <= maxBody {
			return r
		}
		shorten(&r)
	}
	return r
}

// shortened drops the notes of good volumes and cuts the reasons of failed ones
// to that many bytes.
func shortened(volumes map[string]checkin.VolumeReport, reason int) map[string]checkin.VolumeReport {
	short := make(map[string]checkin.VolumeReport, len(volumes))
	for id, result := range volumes {
		if result.Applied || reason == 0 {
			result.Message = ""
		} else {
			result.Message = checkin.CleanMessage(result.Message, reason)
		}
		short[id] = result
	}
	return short
}

// firstLeftOut lists only the first of the records that are left out, and says
// how many there are.
func firstLeftOut(services map[string]checkin.ServiceReport, limit int) map[string]checkin.ServiceReport {
	short := make(map[string]checkin.ServiceReport, len(services))
	for name, service := range services {
		if count := len(service.Quarantined); count > limit {
			service.Quarantined = service.Quarantined[:limit]
			service.Message = checkin.CleanMessage(fmt.Sprintf("%s\n%d records are left out, of which the first %d are told",
				service.Message, count, limit), checkin.MaxMessage)
		}
		short[name] = service
	}
	return short
}

// failing are the probes that found something, without words.
func failing(probes map[string]checkin.Probe) map[string]checkin.Probe {
	short := make(map[string]checkin.Probe, len(probes))
	for name, probe := range probes {
		if probe.Hop != checkin.HopNone {
			short[name] = checkin.Probe{Hop: probe.Hop}
		}
	}
	return short
}
