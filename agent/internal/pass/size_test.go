package pass

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"opensource.internal/agent/checkin"
)

// However much is wrong, the manager gets to know: it refuses a check-in that
// is too large.
func TestACheckInFitsWhateverItHasToTell(t *testing.T) {
	s := newSite(t)
	snapshot := lab()
	for i := range 8000 {
		bad := snapshot.NGINX.HTTPServices[0]
		bad.ID, bad.ExternalHostname, bad.Container.IPv4Address = int64(i+10), fmt.Sprintf("app%d", i), "192.0.2.101/24"
		snapshot.NGINX.HTTPServices = append(snapshot.NGINX.HTTPServices, bad)
		snapshot.Site.Volumes = append(snapshot.Site.Volumes, checkin.Volume{
			ID: int64(i + 1), HostPath: fmt.Sprintf("relative/%s/%d", strings.Repeat("é", 60), i), Mode: "rw",
		})
	}
	s.publish(snapshot)
	options := s.options()
	var log bytes.Buffer
	options.Log = slog.New(slog.NewTextHandler(&log, nil))
	if code := Run(t.Context(), options); code != Rejected {
		t.Errorf("exit code %d", code)
	}
	if lines := strings.Count(log.String(), "record left out"); lines != maxLines || !strings.Contains(log.String(), "count=7980") {
		t.Errorf("%d records are logged as left out", lines)
	}
	requests, _ := s.take()
	told := last(t, requests)
	body, err := json.Marshal(told)
	if err != nil {
		t.Fatal(err)
	}
	if len(body) > maxBody {
		t.Errorf("the check-in has %d bytes", len(body))
	}
	nginx := told.Services["nginx"]
	if len(nginx.Quarantined) != 100 || nginx.Quarantined[0].Reason == "" || !strings.Contains(nginx.Message, "8000 records are left out") {
		t.Errorf("%d records are told as left out: %s", len(nginx.Quarantined), nginx.Message)
	}
	if len(told.Volumes) != 8000 || told.Volumes["1"].Applied {
		t.Errorf("%d volumes are told", len(told.Volumes))
	}
}

func TestACheckInThatFitsIsToldInFull(t *testing.T) {
	r := checkin.Request{
		Services:     map[string]checkin.ServiceReport{"nginx": {Quarantined: make([]checkin.QuarantinedItem, 200)}},
		Volumes:      map[string]checkin.VolumeReport{"1": {Message: strings.Repeat("x", 300)}},
		Certificates: map[string]checkin.Certificate{"example.com": {State: checkin.CertificateOK}},
	}
	got := fitted(r)
	if len(got.Services["nginx"].Quarantined) != 200 || len(got.Volumes["1"].Message) != 300 || got.Certificates == nil {
		t.Errorf("something is missing: %+v", got)
	}
}

func TestOfTooManyProbesThoseThatFailAreTold(t *testing.T) {
	r := checkin.Request{Probes: map[string]checkin.Probe{}}
	for i := range 3000 {
		r.Probes[fmt.Sprintf("app%d.example.com", i)] = checkin.Probe{Hop: checkin.HopBackend, Message: strings.Repeat("x", checkin.MaxProbeMessage)}
		r.Probes[fmt.Sprintf("good%d.example.com", i)] = checkin.Probe{}
	}
	got := fitted(r)
	if len(got.Probes) != 3000 || got.Probes["app0.example.com"] != (checkin.Probe{Hop: checkin.HopBackend}) {
		t.Errorf("%d probes are told, the first as %+v", len(got.Probes), got.Probes["app0.example.com"])
	}
	if body, err := json.Marshal(got); err != nil || len(body) > maxBody {
		t.Errorf("%d bytes, %v", len(body), err)
	}
}
