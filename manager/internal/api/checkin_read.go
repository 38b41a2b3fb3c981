package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"opensource.internal/agent/checkin"
)

// Limits of a check-in.
const (
	maxCheckIn     = 1 << 20 // bytes
	trustedLength  = 16 << 10
	maxServices    = 32
	maxVolumes     = 10_000
	maxServiceName = 64
	maxShortText   = 256 // versions, states and the like
)

// told is what a check-in tells, checked and folded.
type told struct {
	siteID   int64
	hostname string
	clock    agentClock
	report   *checkin.Request // without volumes; not changed any more
	volumes  map[int64]checkin.VolumeReport
	odd      oddities  // left out
	at       time.Time // by the manager's clock
}

func (t *told) key() agentKey { return agentKey{t.siteID, t.hostname} }

// forget drops results that are not to be taken.
func (t *told) forget(volumes []int64) {
	for _, id := range volumes {
		delete(t.volumes, id)
	}
}

// wireCheckIn is the body as it is sent. Types are never coerced and unknown
// fields are ignored; null is the same as absent. Only what a check-in cannot do
// without is refused if it is odd, and what is too much; any other odd value is
// as good as absent: an agent has to be heard, whatever its host tells it.
type wireCheckIn struct {
	SiteID       int64                            `json:"siteId"`
	Hostname     string                           `json:"hostname"`
	CurrentTime  agentClock                       `json:"currentTime"`
	IPv4Address  checkin.Text                     `json:"ipv4Address"`
	Services     map[string]checkin.ServiceReport `json:"services"`
	Volumes      map[string]*wireVolume           `json:"volumes"`
	Agent        *checkin.AgentInfo               `json:"agent"`
	Host         *checkin.HostInfo                `json:"host"`
	Running      *checkin.Running                 `json:"running"`
	Certificates map[string]checkin.Certificate   `json:"certificates"`
	Guard        *checkin.Guard                   `json:"guard"`
	Probes       map[string]*checkin.Probe        `json:"probes"`
}

type wireVolume struct {
	Applied *bool  `json:"applied"`
	Message string `json:"message"`
}

// readCheckIn reads and checks a body. The error is an *Error.
func readCheckIn(w http.ResponseWriter, r *http.Request) (*told, error) {
	if !isJSON(r.Header.Get("Content-Type")) {
		return nil, &Error{Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type", Message: "the body has to be application/json"}
	}
	body, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	var wire wireCheckIn
	odd := oddities{}
	if err := json.Unmarshal(body, &wire); err != nil {
		if err := notDecoded(err); err != nil {
			return nil, err
		}
		decodeTolerant(body, reflect.ValueOf(&wire).Elem(), "", odd)
	}
	return wire.check(odd)
}

func isJSON(contentType string) bool {
	if contentType == "application/json" || contentType == "" {
		return true
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	return err == nil && (mediaType == "application/json" || strings.HasSuffix(mediaType, "+json"))
}

var errCheckInTooLarge = &Error{Status: http.StatusRequestEntityTooLarge, Code: "too_large", Message: "a check-in has at most 1 MiB"}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength > maxCheckIn {
		return nil, errCheckInTooLarge
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)) // the server has one, too
	body, err := readAtMost(http.MaxBytesReader(w, r.Body, maxCheckIn), r.ContentLength)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, errCheckInTooLarge
	case err != nil:
		return nil, cutOff(err)
	}
	return body, nil
}

// readAtMost reads a body to its end. Memory for a length that was announced is
// taken at once only if it is little: who may check in is not known yet, and
// announcing costs a stranger nothing.
func readAtMost(body io.Reader, announced int64) ([]byte, error) {
	if announced < 0 || announced > trustedLength {
		return io.ReadAll(body)
	}
	read := make([]byte, announced)
	_, err := io.ReadFull(body, read) // net/http holds the client to the length
	return read, err
}

// notDecoded says what is wrong with JSON without the decoder's own words. It is
// nil if only single values are.
func notDecoded(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return &Error{Status: http.StatusBadRequest, Code: "malformed_json", Message: "the body is not valid JSON, at byte " + strconv.FormatInt(syntax.Offset, 10)}
	}
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) && wrongType.Field == "" {
		return invalidFields(map[string]string{"body": "must be an object"})
	}
	return nil
}

// check folds the values, names every fault by its field, and drops what is odd.
func (c *wireCheckIn) check(odd oddities) (*told, error) {
	faults := map[string]string{}
	if c.SiteID <= 0 {
		faults["siteId"] = cmp.Or(odd["siteId"], "is required: a number from 1")
	}
	// A full name is taken, too: some hosts are named so, and it tells hosts of
	// one short name apart.
	hostname, err := checkin.ParseDomain(c.Hostname)
	switch {
	case c.Hostname == "":
		faults["hostname"] = cmp.Or(odd["hostname"], "is required: the name of the agent's host")
	case err != nil:
		faults["hostname"] = err.Error()
	}
	if _, err := checkin.ParseIPv4(string(c.IPv4Address)); c.IPv4Address != "" && err != nil {
		odd["ipv4Address"], c.IPv4Address = err.Error(), ""
	}
	services := c.checkServices(faults, odd)
	volumes := c.checkVolumes(faults, odd)
	if len(faults) > 0 {
		return nil, invalidFields(faults)
	}
	report := &checkin.Request{
		SiteID: c.SiteID, Hostname: hostname, CurrentTime: c.CurrentTime.seconds, IPv4Address: c.IPv4Address,
		Services: services, Agent: c.Agent, Host: c.Host, Running: c.Running, Certificates: c.Certificates, Guard: c.Guard,
		Probes: probed(c.Probes, odd),
	}
	cleanReport(report)
	return &told{siteID: c.SiteID, hostname: hostname, clock: c.CurrentTime, volumes: volumes, report: report, odd: odd}, nil
}

// probed leaves out what is null or odd: it was not probed, which is not "all is
// well".
func probed(wire map[string]*checkin.Probe, odd oddities) map[string]checkin.Probe {
	var probes map[string]checkin.Probe
	for name, probe := range wire {
		if probe == nil || odd["probes."+name+".hop"] != "" {
			continue
		}
		if probes == nil {
			probes = make(map[string]checkin.Probe, len(wire))
		}
		probes[name] = *probe
	}
	return probes
}

func (c *wireCheckIn) checkServices(faults map[string]string, odd oddities) map[string]checkin.ServiceReport {
	if len(c.Services) > maxServices {
		faults["services"] = fmt.Sprintf("%d services are more than %d", len(c.Services), maxServices)
		return nil
	}
	for name, report := range c.Services {
		if !isServiceName(name) {
			faults["services"] = "a name has 1 to 64 letters, digits and . _ @ -"
			continue
		}
		if report.State == "" && report.LastApply == "" {
			delete(c.Services, name) // null, or as good as that
			continue
		}
		checkService(&report, "services."+name, odd)
		c.Services[name] = report
	}
	return c.Services
}

func checkService(report *checkin.ServiceReport, field string, odd oddities) {
	switch report.LastApply {
	case "", checkin.ApplySuccess, checkin.ApplyFailure, checkin.ApplyUnknown:
	default:
		odd[field+".lastApply"], report.LastApply = `is not "success", "failure" or "unknown"`, ""
	}
	if len(report.State) > maxShortText {
		odd[field+".state"], report.State = "is not one word", ""
	}
	if len(report.Outcome) > maxShortText {
		odd[field+".outcome"], report.Outcome = "is not one word", ""
	}
	report.LastApply = cmp.Or(report.LastApply, checkin.ApplyUnknown)
	report.State = cmp.Or(report.State, checkin.StateUnknown)
}

// isServiceName allows the names of systemd units, in short form.
func isServiceName(name string) bool {
	if name == "" || len(name) > maxServiceName {
		return false
	}
	for _, c := range []byte(name) {
		letterOrDigit := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letterOrDigit && strings.IndexByte("._@-", c) < 0 {
			return false
		}
	}
	return true
}

func (c *wireCheckIn) checkVolumes(faults map[string]string, odd oddities) map[int64]checkin.VolumeReport {
	if len(c.Volumes) > maxVolumes {
		faults["volumes"] = fmt.Sprintf("%d results are more than %d", len(c.Volumes), maxVolumes)
		return nil
	}
	if len(c.Volumes) == 0 {
		return nil
	}
	volumes := make(map[int64]checkin.VolumeReport, len(c.Volumes))
	for key, result := range c.Volumes {
		id, err := strconv.ParseInt(key, 10, 64)
		switch {
		case err != nil || id <= 0 || strconv.FormatInt(id, 10) != key:
			odd["volumes."+key] = "is not named by the id of a volume"
		case result == nil:
		case result.Applied == nil:
			odd["volumes."+key] = "has no applied"
		default:
			volumes[id] = checkin.VolumeReport{
				Applied: *result.Applied, Message: checkin.CleanMessage(result.Message, checkin.MaxMessage),
			}
		}
	}
	return volumes
}

// agentClock is the agent's own time. Any number is read, since a wrong clock
// must not keep an agent from being heard; a text is not a number.
type agentClock struct {
	seconds int64 // since the epoch; 0 if it makes no sense
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *agentClock) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	if first := data[0]; first != '-' && (first < '0' || first > '9') {
		return &json.UnmarshalTypeError{Value: kindOf(first)}
	}
	const absurd = 1e11 // the year 5138; whoever sends milliseconds is beyond it
	seconds, err := strconv.ParseFloat(string(data), 64)
	if err == nil && seconds > 0 && seconds < absurd {
		c.seconds = int64(math.Floor(seconds))
	}
	return nil
}

func kindOf(first byte) string {
	switch first {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	}
	return "bool"
}

// clockSkewMS is how far the agent's clock is ahead, in milliseconds. It sends
// whole seconds, so anything within that second is no skew. Nil means that it
// sent nothing that makes sense.
func (t *told) clockSkewMS() *int64 {
	if t.clock.seconds == 0 {
		return nil
	}
	earliest, received := t.clock.seconds*1000, t.at.UnixMilli()
	var skew int64
	switch {
	case received < earliest:
		skew = earliest - received
	case received > earliest+1000:
		skew = earliest + 1000 - received
	}
	return &skew
}
