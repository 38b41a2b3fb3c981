package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
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
// fields are ignored; null is the same as absent.
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
	if err := json.Unmarshal(body, &wire); err != nil {
		return nil, notDecoded(err)
	}
	return wire.check()
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
	body, err := readAtMost(http.MaxBytesReader(w, r.Body, maxCheckIn), r.ContentLength)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, errCheckInTooLarge
	case err != nil:
		return nil, &Error{Status: http.StatusBadRequest, Code: "bad_request", Message: "the body could not be read to its end"}
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

// notDecoded says what is wrong with JSON without the decoder's own words.
func notDecoded(err error) *Error {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) && wrongType.Field != "" {
		return invalidFields(map[string]string{wrongType.Field: "must not be of type " + wrongType.Value})
	}
	if errors.As(err, &wrongType) {
		return invalidFields(map[string]string{"body": "must be an object"})
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return &Error{Status: http.StatusBadRequest, Code: "malformed_json", Message: "the body is not valid JSON, at byte " + strconv.FormatInt(syntax.Offset, 10)}
	}
	// Left are values that parse themselves: times.
	return invalidFields(map[string]string{"body": "a time is not in the form of RFC 3339"})
}

// check folds the values and names every fault by its field.
func (c *wireCheckIn) check() (*told, error) {
	faults := map[string]string{}
	if c.SiteID <= 0 {
		faults["siteId"] = "is required: a number from 1"
	}
	// A full name is taken, too: some hosts are named so, and it tells hosts of
	// one short name apart.
	hostname, err := checkin.ParseDomain(c.Hostname)
	switch {
	case c.Hostname == "":
		faults["hostname"] = "is required: the name of the agent's host"
	case err != nil:
		faults["hostname"] = err.Error()
	}
	if c.IPv4Address != "" {
		if _, err := checkin.ParseIPv4(string(c.IPv4Address)); err != nil {
			faults["ipv4Address"] = err.Error()
		}
	}
	services := c.checkServices(faults)
	volumes := c.checkVolumes(faults)
	if len(faults) > 0 {
		return nil, invalidFields(faults)
	}
	report := &checkin.Request{
		SiteID: c.SiteID, Hostname: hostname, CurrentTime: c.CurrentTime.seconds, IPv4Address: c.IPv4Address,
		Services: services, Agent: c.Agent, Host: c.Host, Running: c.Running, Certificates: c.Certificates, Guard: c.Guard,
		Probes: probed(c.Probes),
	}
	cleanReport(report)
	return &told{siteID: c.SiteID, hostname: hostname, clock: c.CurrentTime, volumes: volumes, report: report}, nil
}

// probed leaves out what is null: it was not probed, which is not "all is well".
func probed(wire map[string]*checkin.Probe) map[string]checkin.Probe {
	var probes map[string]checkin.Probe
	for name, probe := range wire {
		if probe == nil {
			continue
		}
		if probes == nil {
			probes = make(map[string]checkin.Probe, len(wire))
		}
		probes[name] = *probe
	}
	return probes
}

func (c *wireCheckIn) checkServices(faults map[string]string) map[string]checkin.ServiceReport {
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
		if fault := checkService(&report); fault != "" {
			faults["services."+name] = fault
			continue
		}
		c.Services[name] = report
	}
	return c.Services
}

func checkService(report *checkin.ServiceReport) string {
	switch report.LastApply {
	case "":
		report.LastApply = checkin.ApplyUnknown
	case checkin.ApplySuccess, checkin.ApplyFailure, checkin.ApplyUnknown:
	default:
		return `lastApply is "success", "failure" or "unknown"`
	}
	if report.State == "" {
		report.State = checkin.StateUnknown
	}
	if len(report.State) > maxShortText || len(report.Outcome) > maxShortText {
		return "state and outcome are one word"
	}
	return ""
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

func (c *wireCheckIn) checkVolumes(faults map[string]string) map[int64]checkin.VolumeReport {
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
			faults["volumes"] = "a key is the id of a volume"
		case result == nil:
		case result.Applied == nil:
			faults["volumes."+key] = "applied is required"
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
