package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"opensource.internal/agent/checkin"
)

var errEmpty = errors.New("the file is empty")

// parseState reads as much of state.json as makes sense: a field of an odd
// form is left out and named in the error, the others are kept.
func parseState(content []byte) (State, error) {
	if s, ok := parseWhole(content); ok {
		return s, nil
	}
	fields, err := object(content)
	if err != nil {
		return State{}, err
	}
	var s State
	err = errors.Join(
		take(fields, "services", &s.Services),
		take(fields, "volumes", &s.Volumes),
		take(fields, "fingerprint", &s.Fingerprint),
		take(fields, "running", &s.Running),
		take(fields, "certificateNotes", &s.CertificateNotes),
		take(fields, "host", &s.Host),
		take(fields, "realSite", &s.RealSite),
		take(fields, "holds", &s.Holds),
		take(fields, "guard", &s.Guard),
		take(fields, "probes", &s.Probes),
		take(fields, "machineId", &s.MachineID),
		take(fields, "hostname", &s.Hostname),
		take(fields, "outline", &s.Outline),
		takeEarlier(fields, &s),
	)
	s.dropOddTags()
	s.dropOddResults()
	return s, err
}

// parseWhole reads a file as this generation of the agent writes it, at once.
func parseWhole(content []byte) (State, bool) {
	var file struct {
		State
		ETag      json.RawMessage `json:"etag"` // of an earlier generation, and so is this:
		LastApply json.RawMessage `json:"lastApply"`
	}
	if !bytes.HasPrefix(content, []byte("{")) || json.Unmarshal(content, &file) != nil || file.ETag != nil || file.LastApply != nil {
		return State{}, false
	}
	file.dropOddTags()
	file.dropOddResults()
	return file.State, true
}

// object reads one JSON object without looking into its fields.
func object(content []byte) (map[string]json.RawMessage, error) {
	if len(bytes.TrimSpace(content)) == 0 {
		return nil, errEmpty
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(content, &fields); err != nil {
		return nil, err
	}
	if fields == nil {
		return nil, errors.New("the file holds null")
	}
	return fields, nil
}

// take decodes a field if it is there; into is untouched by a field of an odd
// form.
func take[T any](fields map[string]json.RawMessage, name string, into *T) error {
	raw, ok := fields[name]
	if !ok {
		return nil
	}
	var value T
	if err := json.Unmarshal(raw, &value); err != nil {
		return fmt.Errorf("field %s: %w", name, err)
	}
	*into = value
	return nil
}

// takeEarlier takes over what the earlier generation of the agent left: how
// the latest apply of each service ended. Its tag is not taken, since there is
// no snapshot to go with it. That there was one tells that this host serves a
// site already, which an answer without a site must not wipe.
func takeEarlier(fields map[string]json.RawMessage, s *State) error {
	if _, found := fields["etag"]; found {
		s.RealSite = true
	}
	var lastApply map[string]checkin.LastApply
	if err := take(fields, "lastApply", &lastApply); err != nil {
		return err
	}
	for name, value := range lastApply {
		_, known := s.Services[name]
		if known || value != checkin.ApplySuccess && value != checkin.ApplyFailure {
			continue
		}
		if s.Services == nil {
			s.Services = map[string]Service{}
		}
		s.Services[name] = Service{LastApply: value}
	}
	return nil
}

// dropOddTags removes what cannot have been a tag: a damaged file must not be
// reported as a fact about what runs.
func (s *State) dropOddTags() {
	if s.Running != nil && !checkin.ValidETag(s.Running.ETag) {
		s.Running = nil
	}
	if s.Guard != nil && !checkin.ValidETag(s.Guard.ETag) {
		s.Guard.ETag = ""
	}
	for name, service := range s.Services {
		if !checkin.ValidETag(service.ReceivedETag) {
			service.ReceivedETag = ""
		}
		if !checkin.ValidETag(service.RunningETag) {
			service.RunningETag = ""
		}
		s.Services[name] = service
	}
}

// dropOddResults removes what no apply ends with. A manager would refuse every
// check-in that tells it; without the fingerprint all is looked at anew.
func (s *State) dropOddResults() {
	for name, service := range s.Services {
		switch service.LastApply {
		case "", checkin.ApplySuccess, checkin.ApplyFailure, checkin.ApplyUnknown:
		default:
			service.LastApply, s.Fingerprint = "", ""
			s.Services[name] = service
		}
	}
}

func encodeState(s State) ([]byte, error) {
	content, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return append(content, '\n'), nil
}

// envelope is the form of snapshot.json: tag and snapshot in one file, so that
// neither can outlive the other.
type envelope struct {
	ETag string          `json:"etag"`
	Data json.RawMessage `json:"data"`
}

func parseAccepted(content []byte) (Accepted, error) {
	if len(bytes.TrimSpace(content)) == 0 {
		return Accepted{}, errEmpty
	}
	if file, ok := cutEnvelope(content); ok {
		// Whatever is wrong with it shows below, in better words.
		if accepted, err := file.parse(); err == nil {
			return accepted, nil
		}
	}
	var file envelope
	if err := json.Unmarshal(content, &file); err != nil {
		return Accepted{}, err
	}
	return file.parse()
}

func (e envelope) parse() (Accepted, error) {
	if err := checkTag(e.ETag); err != nil {
		return Accepted{}, err
	}
	if e.Data == nil {
		return Accepted{}, errors.New("there is no data")
	}
	snapshot, err := checkin.ParseSnapshot(e.Data)
	if err != nil {
		return Accepted{}, err
	}
	return Accepted{ETag: e.ETag, Data: e.Data, Snapshot: snapshot}, nil
}

// The parts of snapshot.json around tag and data, as encodeAccepted writes it.
const (
	beforeTag  = `{"etag":`
	beforeData = `,"data":`
	afterData  = "}\n"
)

// cutEnvelope takes apart a file that has the form encodeAccepted gives it: the
// data in it can be long, and this way it is read only once, by whoever parses
// it. A file of another form, such as one with further fields, is no fault.
func cutEnvelope(content []byte) (envelope, bool) {
	rest, ok := bytes.CutPrefix(content, []byte(beforeTag))
	if !ok {
		return envelope{}, false
	}
	tag, rest, ok := bytes.Cut(rest, []byte(beforeData)) // inside a string the quotes would be escaped
	if !ok {
		return envelope{}, false
	}
	data, ok := bytes.CutSuffix(rest, []byte(afterData))
	var file envelope
	if !ok || json.Unmarshal(tag, &file.ETag) != nil {
		return envelope{}, false
	}
	file.Data = data
	return file, true
}

// checkTag allows the empty tag: that of a manager whose tag could not be sent
// back.
func checkTag(etag string) error {
	if etag != "" && !checkin.ValidETag(etag) {
		return fmt.Errorf("etag %q is not an entity tag", checkin.CleanMessage(etag, 80))
	}
	return nil
}

// encodeAccepted keeps the bytes of the snapshot as they came: the tag is a
// digest of them. (json.Marshal would compact and escape them.)
func encodeAccepted(a Accepted) ([]byte, error) {
	if err := checkTag(a.ETag); err != nil {
		return nil, err
	}
	if !json.Valid(a.Data) {
		return nil, errors.New("the snapshot is not JSON")
	}
	etag, err := json.Marshal(a.ETag)
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	content.Grow(len(a.Data) + len(etag) + 32)
	content.WriteString(beforeTag)
	content.Write(etag)
	content.WriteString(beforeData)
	content.Write(a.Data)
	content.WriteString(afterData)
	return content.Bytes(), nil
}
