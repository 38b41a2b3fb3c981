package manifest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/prose"
	"opensource.internal/manager/internal/revision"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
)

// SetBackOptions say how an inventory is set back.
type SetBackOptions struct {
	// DryRun finds out what would change, and changes nothing.
	DryRun bool
	// Seen is the tag of what was looked at, "" if nothing was: something else is
	// not done.
	Seen string
}

// SetBackReport is what setting an inventory back changed, or would change.
type SetBackReport struct {
	DryRun  bool     `json:"dryRun"`
	ETag    string   `json:"etag" doc:"Of what is changed and how it is published: give it back to do exactly this"`
	Changes []Change `json:"changes" nullable:"false"`
	Left    []string `json:"left" nullable:"false" doc:"What cannot be brought back or is not touched, in words"`
	// Revision is what agents get afterwards.
	Revision *int64 `json:"revision" doc:"The revision that has the content now; null if it waits to be published, or after a dry run"`
	Held     bool   `json:"held" doc:"Agents do not get it at once: the site is pinned or published by hand"`
}

// Summary counts the changes, in words.
func (r *SetBackReport) Summary() string {
	return (&Report{DryRun: r.DryRun, Changes: r.Changes}).summary()
}

// Write prints a report for people.
func (r *SetBackReport) Write(w io.Writer) error {
	var b strings.Builder
	writeChanges(&b, r.Changes)
	for _, left := range r.Left {
		fmt.Fprintf(&b, "note: %s\n", left)
	}
	b.WriteString(r.Summary() + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// RefusedError says why an inventory was not set back.
type RefusedError struct{ Reasons []string }

func (e *RefusedError) Error() string { return strings.Join(e.Reasons, "; ") }

// SetBack makes a site's inventory again what it was when a revision was made: all
// of it in one transaction, or nothing. Records come back as what they were, with
// their ids, ports and directories. What agents get now is kept as a revision
// before, and the outcome is published under the site's rule. Errors:
// store.ErrNotFound, *RefusedError, *store.ConflictError (something else was seen).
func SetBack(ctx context.Context, s *store.Store, siteID, number int64, o SetBackOptions) (report *SetBackReport, err error) {
	err = s.Atomically(ctx, func(ctx context.Context) error {
		row, err := s.GetRevision(ctx, siteID, number)
		if err != nil {
			return err
		}
		if !o.DryRun {
			if _, err := s.Publish(ctx, siteID, snapshot.Encode); err != nil {
				return err
			}
		}
		b := &settingBack{row: row}
		err = s.Apply(ctx, store.Scope{IDs: []int64{siteID}}, func(present store.Contents) (*store.Changes, error) {
			return b.decide(ctx, s, present, o)
		})
		if errors.Is(err, store.ErrRefused) {
			return b.refused()
		}
		if err != nil {
			return err
		}
		if report, err = b.tell(ctx, s); err != nil {
			return err
		}
		if o.Seen != "" && !checkin.SameETag(o.Seen, report.ETag) {
			return &store.ConflictError{Field: "etag", Message: "something else would be changed by now than what was looked at: look at it again"}
		}
		if o.DryRun || len(report.Changes) == 0 {
			return nil
		}
		published, err := s.NoteSetBack(ctx, siteID, number, snapshot.Encode)
		if err == nil && !published.Held {
			report.Revision = &published.Revision.Number
		}
		return err
	})
	return report, err
}

// settingBack is the way of a site from what it has to what it had.
type settingBack struct {
	*plan
	row  store.Revision
	then store.Former
	left []string
}

func (b *settingBack) decide(ctx context.Context, s *store.Store, present store.Contents, o SetBackOptions) (*store.Changes, error) {
	if err := requireOne(present); err != nil {
		return nil, err
	}
	b.plan = emptyPlan(present, Options{DryRun: o.DryRun, SiteID: b.row.SiteID})
	var err error
	if b.then, err = s.Rewind(ctx, present, b.row); err != nil && !errors.Is(err, store.ErrLost) {
		return nil, err
	}
	if err != nil || !b.proven() {
		return nil, b.lost()
	}
	b.changes.Dry, b.changes.Encode = o.DryRun, snapshot.Encode
	b.setBackSite()
	b.setBackDomains()
	b.setBackRecords()
	return &b.changes, nil
}

func requireOne(present store.Contents) error {
	if len(present.Sites) == 0 {
		return store.ErrNotFound
	}
	return nil
}

// proven compares what the audit log says that the site had with what agents got.
func (b *settingBack) proven() bool {
	got, err := checkin.ParseSnapshot(b.row.Data)
	if err != nil || len(b.then.Sites) != 1 {
		return false
	}
	built := snapshot.Build(store.InventoryOf(b.then.Contents))
	built.RemovalsConfirmed = got.RemovalsConfirmed
	return len(revision.Compare(got, built)) == 0
}

func (b *settingBack) lost() error {
	reason := fmt.Sprintf("what was changed since revision %d is not in the audit log as a whole", b.row.Number)
	if b.then.Since != nil {
		reason += ", which goes back to " + prose.Minute(*b.then.Since)
	}
	return &RefusedError{[]string{reason + ": the inventory cannot be set back to it. Agents can still be given exactly that revision: pin it"}}
}

// leave says what stays as it is.
func (b *settingBack) leave(format string, args ...any) {
	b.left = append(b.left, fmt.Sprintf(format, args...))
}

// setBackSite sets all of a site back but how it is published: whoever looks at
// every change goes on to.
func (b *settingBack) setBackSite() {
	now, then := b.present.Sites[0], b.then.Sites[0]
	if now.Publishing != then.Publishing {
		b.leave("how the site is published stays as it is (%s); it was %s", now.Publishing, then.Publishing)
	}
	then.Publishing = now.Publishing
	c := &store.SiteChange{}
	c.Before, c.After = &now, &then
	b.changes.Sites = []*store.SiteChange{c}
	if b.then.Since != nil {
		b.leave("what agents do not see, such as an owner, and was changed before %s stays as it is: the audit log goes back no further",
			prose.Minute(*b.then.Since))
	}
}

// setBackDomains sets those external domains back that the site used, and takes
// the site from those whose default it was not. None is deleted: other sites may
// count on it.
func (b *settingBack) setBackDomains() {
	used := map[int64]bool{}
	for _, domain := range store.InventoryOf(b.then.Contents).Domains {
		used[domain.ID] = true
	}
	for domainID, change := range between(b.present.Domains, b.then.Domains, func(d store.ExternalDomain) int64 { return d.ID }) {
		now, then := change.Before, change.After
		if now == nil && !used[domainID] {
			continue // another site's that is gone
		}
		c := &store.DomainChange{Change: change}
		if !used[domainID] {
			after := *now
			c.After = &after
		}
		c.After.DefaultSiteID = b.defaultSite(now, then)
		b.changes.Domains = append(b.changes.Domains, c)
		if then == nil && b.uses(domainID) {
			b.leave("the external domain %q was made since and stays: it belongs to no site", now.Name)
		}
	}
}

// defaultSite is the default site of a domain afterwards. Which of other sites it
// is, is none of this one's business.
func (b *settingBack) defaultSite(now, then *store.ExternalDomain) *int64 {
	var is, was *int64
	if now != nil {
		is = now.DefaultSiteID
	}
	if then != nil {
		was = then.DefaultSiteID
	}
	mine := func(site *int64) bool { return site != nil && *site == b.row.SiteID }
	if now != nil && !mine(is) && !mine(was) {
		return is
	}
	if was != nil && b.present.SiteNames[*was] == "" {
		b.leave("the external domain %q had a default site that is deleted by now: it has none", then.Name)
		return nil
	}
	return was
}

// uses reports whether the site has something under a domain now.
func (b *settingBack) uses(domainID int64) bool {
	for _, service := range b.present.Services {
		if service.Type == inventory.ServiceHTTP && service.ExternalDomainID != nil && *service.ExternalDomainID == domainID {
			return true
		}
	}
	return false
}

func (b *settingBack) setBackRecords() {
	site := b.changes.Sites[0]
	domains := map[int64]*store.DomainChange{}
	for _, c := range b.changes.Domains {
		domains[c.After.ID] = c
	}
	nodes := map[int64]*store.NodeChange{}
	for id, change := range between(b.present.Nodes, b.then.Nodes, func(n store.Node) int64 { return n.ID }) {
		nodes[id] = &store.NodeChange{Change: change, Site: site}
		b.changes.Nodes = append(b.changes.Nodes, nodes[id])
	}
	containers := map[int64]*store.ContainerChange{}
	for id, change := range between(b.present.Containers, b.then.Containers, func(c store.Container) int64 { return c.ID }) {
		containers[id] = &store.ContainerChange{Change: change, Site: site, Node: nodes[either(change).NodeID]}
		b.changes.Containers = append(b.changes.Containers, containers[id])
	}
	for _, change := range between(b.present.Services, b.then.Services, func(s store.Service) int64 { return s.ID }) {
		c := &store.ServiceChange{Change: change, Container: containers[either(change).ContainerID]}
		if change.After != nil && change.After.ExternalDomainID != nil {
			c.Domain = domains[*change.After.ExternalDomainID]
		}
		b.changes.Services = append(b.changes.Services, c)
	}
	for _, change := range between(b.present.Volumes, b.then.Volumes, func(v store.Volume) int64 { return v.ID }) {
		b.changes.Volumes = append(b.changes.Volumes, &store.VolumeChange{Change: change, Container: containers[either(change).ContainerID]})
	}
}

// between are the changes from some records to others, by id.
func between[T any](before, after []T, id func(T) int64) iter.Seq2[int64, store.Change[T]] {
	return func(yield func(int64, store.Change[T]) bool) {
		former := map[int64]*T{}
		for _, record := range before {
			former[id(record)] = &record
		}
		for _, record := range after {
			change := store.Change[T]{Before: former[id(record)], After: &record}
			delete(former, id(record))
			if !yield(id(record), change) {
				return
			}
		}
		for _, record := range before {
			if former[id(record)] != nil && !yield(id(record), store.Change[T]{Before: &record}) {
				return
			}
		}
	}
}

// tell reports what was done, with the tag of it.
func (b *settingBack) tell(ctx context.Context, s *store.Store) (*SetBackReport, error) {
	pin, err := s.GetPin(ctx, b.row.SiteID)
	if err != nil {
		return nil, err
	}
	changes := b.report().Changes
	for i, c := range changes {
		if c.Kind == "external domain" && c.Action == Update {
			changes[i].Note = b.elsewhere(c.Name)
		}
	}
	publishing := b.present.Sites[0].Publishing
	report := &SetBackReport{
		DryRun: b.DryRun, Changes: changes, Left: append([]string{}, b.left...), Held: pin != nil || publishing == inventory.PublishManual,
	}
	told, err := json.Marshal([]any{changes, publishing, pin, b.row.Number})
	report.ETag = checkin.ETag(told)
	return report, err
}

// elsewhere says who else has a domain.
func (b *settingBack) elsewhere(name string) string {
	for _, domain := range b.domains {
		if sites := b.then.Elsewhere[domain.ID]; domain.Name == name && len(sites) > 0 {
			return fmt.Sprintf("other sites have services under it: %q", sites)
		}
	}
	return ""
}

// refused says of each record why it cannot be what it was.
func (b *settingBack) refused() error {
	b.learnNames()
	var e RefusedError
	add := func(what string, err error) {
		if err == nil || errors.Is(err, store.ErrRefused) {
			return
		}
		var conflict *store.ConflictError
		reason := fmt.Sprintf("%s: %v", what, err)
		if errors.As(err, &conflict) && len(conflict.Holders) > 0 {
			reason += " (" + strings.Join(conflict.Holders, ", ") + ")"
		}
		e.Reasons = append(e.Reasons, reason)
	}
	for _, c := range b.changes.Sites {
		add(described("site", c.After.Name, "", ""), c.Err)
	}
	for _, c := range b.changes.Domains {
		add(described("external domain", c.After.Name, "", ""), c.Err)
	}
	for _, c := range b.changes.Nodes {
		add(described("node", either(c.Change).Name, "", ""), c.Err)
	}
	for _, c := range b.changes.Containers {
		add(described("container", either(c.Change).Hostname, "", ""), c.Err)
	}
	for _, c := range b.changes.Services {
		about := b.aboutService(c)
		add(described(about.Kind, about.Name, about.Container, ""), c.Err)
	}
	for _, c := range b.changes.Volumes {
		about := b.aboutVolume(c)
		add(described(about.Kind, about.Name, about.Container, ""), c.Err)
	}
	return &e
}
