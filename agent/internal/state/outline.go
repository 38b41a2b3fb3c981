package state

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"

	"opensource.internal/agent/checkin"
)

// Outline is what a pass in which nothing has changed has to know of the
// accepted snapshot. To read a snapshot with thousands of services takes longer
// than all else that such a pass does.
type Outline struct {
	// File is the digest of the snapshot.json it was made from, and Agent the
	// version of the agent that had read that.
	File  string `json:"file"`
	Agent string `json:"agent"`
	// Digest is the snapshot's, see Accepted.
	Digest string `json:"digest"`

	SiteID  int64            `json:"siteId,omitempty"` // 0 if there is no site
	Volumes []checkin.Volume `json:"volumes"`          // nil if the manager knows of none
	Domains []string         `json:"domains,omitempty"`
}

// NewOutline returns the outline of a snapshot that was read whole. domains are
// all external domains it names.
func NewOutline(a Accepted, domains []string, agent string) (*Outline, error) {
	content, err := encodeAccepted(a)
	if err != nil {
		return nil, fmt.Errorf("outline the snapshot: %w", err)
	}
	digest := sha256.Sum256(content)
	o := &Outline{File: hex.EncodeToString(digest[:]), Agent: agent, Digest: a.Digest(), Domains: domains}
	if site := a.Snapshot.Site; site != nil {
		o.SiteID, o.Volumes = site.ID, site.Volumes
	}
	return o, nil
}

// snapshot is as much of the snapshot as the outline tells.
func (o *Outline) snapshot() checkin.Snapshot {
	s := checkin.Bootstrap()
	if o.SiteID != 0 {
		s.Site = &checkin.Site{ID: o.SiteID, Volumes: o.Volumes}
	}
	for _, domain := range o.Domains {
		s.NGINX.ExternalDomains = append(s.NGINX.ExternalDomains, checkin.ExternalDomain{Name: domain})
	}
	return s
}

// LoadOutlined is Load, but reads of the accepted snapshot no more than its
// outline, if there is one and it was made by this version of the agent.
func (d *Dir) LoadOutlined(agent string) (State, Accepted, []error) {
	state, err := d.loadState()
	accepted, outlined := Accepted{}, false
	if o := state.Outline; o != nil && o.Agent == agent {
		accepted, outlined = d.outlined(o)
	}
	if !outlined {
		return d.load(state, err)
	}
	state.RealSite = state.RealSite || accepted.Snapshot.Site != nil
	if err != nil {
		return state, accepted, []error{err}
	}
	return state, accepted, nil
}

// outlined returns the snapshot by its outline, unless the file is not the one
// that the outline was made from.
func (d *Dir) outlined(o *Outline) (Accepted, bool) {
	content, err := d.read(snapshotFile)
	digest := d.onDisk[snapshotFile]
	if err != nil || content == nil || hex.EncodeToString(digest[:]) != o.File {
		return Accepted{}, false
	}
	file, ok := cutEnvelope(content)
	return Accepted{ETag: file.ETag, Data: file.Data, Snapshot: o.snapshot(), Outlined: true, Sum: o.Digest}, ok
}

// Whole reads all of a snapshot of which there is only the outline.
func (a Accepted) Whole() (Accepted, error) {
	snapshot, err := checkin.ParseSnapshot(a.Data)
	if err != nil {
		return a, fmt.Errorf("read %s again: %w", filepath.Base(snapshotFile), err)
	}
	return Accepted{ETag: a.ETag, Data: a.Data, Snapshot: snapshot}, nil
}
