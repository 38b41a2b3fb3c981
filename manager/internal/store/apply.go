package store

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"

	"opensource.internal/manager/internal/inventory"
)

// Scope says which sites' records are read: those of the names and ids, or all.
// What does not exist is left out.
type Scope struct {
	Names []string
	IDs   []int64
	All   bool
}

// Contents are the records of some sites, each list ordered by id, and what
// such records may refer to beyond them.
type Contents struct {
	Sites      []Site
	Nodes      []Node
	Containers []Container
	Services   []Service
	Volumes    []Volume
	// Domains are all external domains there are.
	Domains []ExternalDomain
	// SiteNames are those of all sites, by id.
	SiteNames map[int64]string
	// ReservedPorts are never given to a transport service, on top of
	// inventory.ReservedPorts.
	ReservedPorts []int
}

// Change is what becomes of a record. Without Before it is created, without
// After it is deleted, with both it is changed, or stays if they are the same.
type Change[T any] struct {
	Before, After *T
	// Err is why Apply refused it: an *InvalidError, a *ConflictError, or
	// ErrRefused if what it depends on was refused. A change that has an Err before
	// is refused like one that Apply finds wrong.
	Err error
}

// The changes of each kind of record. They refer to each other rather than to
// ids, which what is created does not have yet. Apply fills those in, and all
// else that it decides, in After.
type (
	SiteChange   struct{ Change[Site] }
	DomainChange struct {
		Change[ExternalDomain]
		DefaultSite *SiteChange // nil if there is none, or if After has its id
	}
	NodeChange struct {
		Change[Node]
		Site *SiteChange
	}
	ContainerChange struct {
		Change[Container]
		Site *SiteChange
		Node *NodeChange
	}
	ServiceChange struct {
		Change[Service]
		Container *ContainerChange
		Domain    *DomainChange // nil if the service has none
	}
	VolumeChange struct {
		Change[Volume]
		Container *ContainerChange
	}
)

// Changes are made together or not at all. They name no record twice, and delete
// neither sites nor domains.
type Changes struct {
	// Dry is to find out what is wrong with them, and to make none.
	Dry bool

	Sites      []*SiteChange
	Domains    []*DomainChange
	Nodes      []*NodeChange
	Containers []*ContainerChange
	Services   []*ServiceChange
	Volumes    []*VolumeChange

	// Encode makes the revision that a site begins with to be published by hand.
	Encode Encode
}

// ErrRefused says that Apply changed nothing, since some of the changes were
// refused: each has its Err.
var ErrRefused = errors.New("changes were refused")

// errDry ends the transaction of changes that are only tried.
var errDry = errors.New("dry run")

// Read returns the contents of some sites as of one moment.
func (s *Store) Read(ctx context.Context, scope Scope) (Contents, error) {
	var read Contents
	err := s.reader(ctx).Transaction(func(tx *gorm.DB) (err error) {
		read, err = s.readContents(tx, scope)
		return err
	}, asOfOneMoment)
	return read, err
}

// Apply reads what is stored, lets decide say what is to become of it, and makes
// these changes, all in one transaction. Every change is checked as if it came
// alone, but for their order: two records may exchange a value. All that are
// refused are found, and then, as with an error of decide, nothing is written.
func (s *Store) Apply(ctx context.Context, scope Scope, decide func(Contents) (*Changes, error)) error {
	return s.update(ctx, func(tx *gorm.DB) error {
		giveBack, err := s.engine.noteIDs(tx)
		if err != nil {
			return fmt.Errorf("note the next ids: %w", err)
		}
		// One in the other: what was tried is taken back, whatever it is part of.
		err = tx.Transaction(func(tx *gorm.DB) error {
			contents, err := s.readContents(tx, scope)
			if err != nil {
				return err
			}
			changes, err := decide(contents)
			if err != nil {
				return err
			}
			if err := auditingLater(tx, func(tx *gorm.DB) error { return s.apply(tx, changes) }); err != nil {
				return err
			}
			if changes.Dry {
				return errDry
			}
			return nil
		})
		if err != nil {
			if undo := giveBack(tx); undo != nil {
				return errors.Join(err, fmt.Errorf("give ids back: %w", undo))
			}
		}
		if errors.Is(err, errDry) {
			return nil
		}
		return err
	})
}

func (s *Store) readContents(tx *gorm.DB, scope Scope) (Contents, error) {
	c := Contents{SiteNames: map[int64]string{}, ReservedPorts: s.reserved}
	var sites []Site
	if err := tx.Order("id").Find(&sites).Error; err != nil {
		return c, fmt.Errorf("read sites: %w", err)
	}
	var ids []int64
	for _, site := range sites {
		c.SiteNames[site.ID] = site.Name
		named := slices.ContainsFunc(scope.Names, func(name string) bool { return strings.EqualFold(name, site.Name) })
		if scope.All || named || slices.Contains(scope.IDs, site.ID) {
			c.Sites = append(c.Sites, site)
			ids = append(ids, site.ID)
		}
	}
	errs := []error{tx.Order("id").Find(&c.Domains).Error}
	for _, id := range ids {
		of := func() *gorm.DB { return tx.Where("site_id = ?", id).Order("id") }
		errs = append(errs,
			appendTo(&c.Nodes, of()), appendTo(&c.Containers, of()), appendTo(&c.Services, of()), appendTo(&c.Volumes, of()))
	}
	if err := errors.Join(errs...); err != nil {
		return c, fmt.Errorf("read the contents of sites: %w", err)
	}
	return c, nil
}

// appendTo adds what a query finds to a list.
func appendTo[T any](list *[]T, query *gorm.DB) error {
	var found []T
	err := query.Find(&found).Error
	*list = append(*list, found...)
	return err
}

// apply makes changes in an order in which none is in the way of another: nobody
// holds a value any more that is given up when others take it, whoever is
// deleted has nothing any more, and what looks at others is checked at the end.
func (s *Store) apply(tx *gorm.DB, c *Changes) error {
	a := &applying{tx: tx, store: s, changes: c, refused: c.refused()}
	for _, step := range []func() error{
		a.writeSites, a.writeDomains, a.deleteParts, a.makeWay,
		a.writeNodes, a.writeContainers, a.writeServices, a.writeVolumes, a.deleteOwners,
		a.checkSites, a.checkDomains,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	if a.refused {
		return ErrRefused
	}
	return nil
}

// refused reports whether some of the changes are not to be made.
func (c *Changes) refused() bool {
	return slices.ContainsFunc(c.Sites, func(c *SiteChange) bool { return c.Err != nil }) ||
		slices.ContainsFunc(c.Domains, func(c *DomainChange) bool { return c.Err != nil }) ||
		slices.ContainsFunc(c.Nodes, func(c *NodeChange) bool { return c.Err != nil }) ||
		slices.ContainsFunc(c.Containers, func(c *ContainerChange) bool { return c.Err != nil }) ||
		slices.ContainsFunc(c.Services, func(c *ServiceChange) bool { return c.Err != nil }) ||
		slices.ContainsFunc(c.Volumes, func(c *VolumeChange) bool { return c.Err != nil })
}

type applying struct {
	tx      *gorm.DB
	store   *Store
	changes *Changes
	refused bool
}

// try makes one change. What is wrong with it is kept in it; what is wrong with
// the database ends everything.
func try[T any](a *applying, c *Change[T], act func(tx *gorm.DB) error) error {
	err := act(a.tx)
	var invalid *InvalidError
	var conflict *ConflictError
	if errors.As(err, &invalid) || errors.As(err, &conflict) {
		a.refused = true
		c.Err = err
		return nil
	}
	return err
}

// writeChange makes a change that creates a record or changes it.
func writeChange[T any](a *applying, c *Change[T], act func(tx *gorm.DB) error) error {
	if c.Err != nil || c.After == nil || c.Before != nil && reflect.DeepEqual(*c.Before, *c.After) {
		return nil
	}
	return try(a, c, act)
}

// each does something with every change until the database fails.
func each[C any](changes []C, act func(C) error) error {
	for _, c := range changes {
		if err := act(c); err != nil {
			return err
		}
	}
	return nil
}

func (a *applying) writeSites() error {
	return each(a.changes.Sites, func(c *SiteChange) error {
		if c.After == nil {
			return errors.New("apply changes: a site cannot be deleted by them")
		}
		return writeChange(a, &c.Change, func(tx *gorm.DB) error { return writeSite(tx, c.Before, c.After, a.changes.Encode) })
	})
}

// writeSite writes a site before anything in it. If it is to be published by
// hand from now on, what agents would get is kept as a revision: as it was before
// all other changes, which wait then.
func writeSite(tx *gorm.DB, before, row *Site, encode Encode) error {
	byHand := row.Publishing == inventory.PublishManual
	if byHand && before != nil {
		if _, err := publish(tx, row.ID, encode); err != nil {
			return err
		}
	}
	if err := write(tx, before, row, row.unique()...); err != nil {
		return err
	}
	if byHand && before == nil {
		_, err := publish(tx, row.ID, encode)
		return err
	}
	return nil
}

func (a *applying) writeDomains() error {
	return each(a.changes.Domains, func(c *DomainChange) error {
		if c.After == nil {
			return errors.New("apply changes: an external domain cannot be deleted by them")
		}
		if c.DefaultSite != nil {
			if c.DefaultSite.Err != nil {
				c.Err = ErrRefused
				return nil
			}
			c.After.DefaultSiteID = &c.DefaultSite.After.ID
		}
		return writeChange(a, &c.Change, func(tx *gorm.DB) error {
			return write(tx, c.Before, c.After, uniquePublicName("name", c.After.Name, 0, c.After.ID))
		})
	})
}

// deleteParts deletes what belongs to containers.
func (a *applying) deleteParts() error {
	return errors.Join(
		each(a.changes.Volumes, func(c *VolumeChange) error { return deleteChange(a, c.Change, func(v Volume) int64 { return v.ID }) }),
		each(a.changes.Services, func(c *ServiceChange) error { return deleteChange(a, c.Change, func(s Service) int64 { return s.ID }) }))
}

// deleteOwners deletes containers and nodes, once all that stays has moved away.
func (a *applying) deleteOwners() error {
	if a.refused { // something may not have moved
		return nil
	}
	return errors.Join(
		each(a.changes.Containers, func(c *ContainerChange) error {
			return deleteChange(a, c.Change, func(c Container) int64 { return c.ID })
		}),
		each(a.changes.Nodes, func(c *NodeChange) error { return deleteChange(a, c.Change, func(n Node) int64 { return n.ID }) }))
}

func deleteChange[T any](a *applying, c Change[T], id func(T) int64) error {
	if c.Before == nil || c.After != nil {
		return nil
	}
	return removeRow(a.tx, *c.Before, id(*c.Before))
}

// makeWay takes every value that is given up away from its record, so that
// another one can take it. What stands there meanwhile nobody ever sees.
func (a *applying) makeWay() error {
	for _, step := range []func() error{a.makeWayOfNodes, a.makeWayOfContainers, a.makeWayOfVolumes, a.makeWayOfNames, a.makeWayOfPorts} {
		if err := step(); err != nil {
			return fmt.Errorf("make way for other records: %w", err)
		}
	}
	return nil
}

func (a *applying) makeWayOfNodes() error {
	return each(a.changes.Nodes, func(c *NodeChange) error {
		switch {
		case c.Before == nil:
			return nil
		case c.After == nil || c.Before.Name != c.After.Name: // a blank is in no name
			return a.tx.Exec("UPDATE nodes SET name = 'leaving node ' || id, ipv4_address = '' WHERE id = ?", c.Before.ID).Error
		case c.Before.IPv4Address != c.After.IPv4Address:
			return a.tx.Exec("UPDATE nodes SET ipv4_address = '' WHERE id = ?", c.Before.ID).Error
		}
		return nil
	})
}

func (a *applying) makeWayOfContainers() error {
	return each(a.changes.Containers, func(c *ContainerChange) error {
		switch {
		case c.Before == nil:
			return nil
		case c.After == nil || c.Before.Hostname != c.After.Hostname:
			return a.tx.Exec("UPDATE containers SET hostname = 'leaving container ' || id, ipv4_address = '', mac_address = '' WHERE id = ?", c.Before.ID).Error
		case c.Before.IPv4Address != c.After.IPv4Address || c.Before.MACAddress != c.After.MACAddress:
			return a.tx.Exec("UPDATE containers SET ipv4_address = '', mac_address = '' WHERE id = ?", c.Before.ID).Error
		}
		return nil
	})
}

func (a *applying) makeWayOfVolumes() error {
	return each(a.changes.Volumes, func(c *VolumeChange) error {
		if c.Before == nil || c.After == nil || c.Before.MountPath == c.After.MountPath && c.Before.Name == c.After.Name {
			return nil
		}
		return a.tx.Exec("UPDATE volumes SET name = 'moving ' || id, mount_path = 'moving ' || id WHERE id = ?", c.Before.ID).Error
	})
}

// makeWayOfNames lets HTTP and DNS services take the names of each other.
func (a *applying) makeWayOfNames() error {
	return each(a.changes.Services, func(c *ServiceChange) error {
		if c.Before == nil || c.After == nil || c.Before.ExternalHostname == c.After.ExternalHostname && c.Before.DNSName == c.After.DNSName {
			return nil
		}
		return a.tx.Exec(`UPDATE services SET
			external_hostname = CASE type WHEN 'http' THEN 'moving ' || id ELSE external_hostname END,
			dns_name = CASE type WHEN 'dns' THEN 'moving ' || id ELSE dns_name END WHERE id = ?`, c.Before.ID).Error
	})
}

// makeWayOfPorts lets transport services wait on ports that nobody has or wants.
func (a *applying) makeWayOfPorts() error {
	spare := a.sparePorts()
	return each(a.changes.Services, func(c *ServiceChange) error {
		if c.Before == nil || c.After == nil || c.Before.ExternalPort == c.After.ExternalPort {
			return nil
		}
		port, err := spare(c.Before.SiteID, c.Before.Protocol)
		if err != nil {
			return err
		}
		return a.tx.Exec("UPDATE services SET external_port = ? WHERE id = ?", port, c.Before.ID).Error
	})
}

// sparePorts returns a function that returns another free port of a site each
// time, from the highest down.
func (a *applying) sparePorts() func(siteID int64, protocol string) (int, error) {
	type space struct {
		siteID   int64
		protocol string
	}
	taken := map[space]map[int]bool{}
	return func(siteID int64, protocol string) (int, error) {
		in := space{siteID, protocol}
		if taken[in] == nil {
			var ports []int
			err := a.tx.Model(&Service{}).Where("type = 'transport' AND site_id = ? AND protocol = ?", siteID, protocol).
				Pluck("external_port", &ports).Error
			if err != nil {
				return 0, fmt.Errorf("read the site's ports: %w", err)
			}
			taken[in] = map[int]bool{}
			for _, port := range ports {
				taken[in][port] = true
			}
		}
		for port := 65535; port > 0; port-- {
			if !taken[in][port] {
				taken[in][port] = true
				return port, nil
			}
		}
		return 0, fmt.Errorf("site %d has no free %s port to exchange others over", siteID, protocol)
	}
}

func (a *applying) writeNodes() error {
	return each(a.changes.Nodes, func(c *NodeChange) error {
		if c.After == nil || c.Err != nil {
			return nil
		}
		if c.Site.Err != nil {
			c.Err = ErrRefused
			return nil
		}
		c.After.SiteID = c.Site.After.ID
		return writeChange(a, &c.Change, func(tx *gorm.DB) error { return writeNode(tx, c.Before, c.After) })
	})
}

func (a *applying) writeContainers() error {
	return each(a.changes.Containers, func(c *ContainerChange) error {
		if c.After == nil || c.Err != nil {
			return nil
		}
		if c.Site.Err != nil || c.Node.Err != nil {
			c.Err = ErrRefused
			return nil
		}
		c.After.SiteID, c.After.NodeID = c.Site.After.ID, c.Node.After.ID
		return writeChange(a, &c.Change, func(tx *gorm.DB) error {
			if err := checkHost(*c.Site.After, c.After.IPv4Address, "hostname", c.After.Hostname); err != nil {
				return err
			}
			return write(tx, c.Before, c.After, c.After.unique()...)
		})
	})
}

func (a *applying) writeServices() error {
	reserved, from := a.reservedPorts(), map[portSpace]int{}
	return each(a.changes.Services, func(c *ServiceChange) error {
		if c.After == nil || c.Err != nil {
			return nil
		}
		if c.Container.Err != nil || c.Domain != nil && c.Domain.Err != nil {
			c.Err = ErrRefused
			return nil
		}
		c.After.SiteID, c.After.ContainerID = c.Container.After.SiteID, c.Container.After.ID
		if c.Domain != nil {
			c.After.ExternalDomainID = &c.Domain.After.ID
		}
		return writeChange(a, &c.Change, func(tx *gorm.DB) (err error) {
			if c.After.Type == inventory.ServiceTransport && c.After.ExternalPort == 0 {
				in := portSpace{c.Container.Site, c.After.Protocol}
				if c.After.ExternalPort, err = freePort(tx, c.After.SiteID, c.After.Protocol, reserved[in], from[in]); err != nil {
					return err
				}
				from[in] = c.After.ExternalPort + 1 // all below are taken by now
			}
			return writeService(tx, c.Before, c.After, a.store.reserved)
		})
	})
}

// portSpace is where a port is unique.
type portSpace struct {
	site     *SiteChange
	protocol string
}

// reservedPorts are those that are not to be allocated, since a service names
// them or the store does.
func (a *applying) reservedPorts() map[portSpace][]int {
	reserved := map[portSpace][]int{}
	for _, c := range a.changes.Services {
		if c.After == nil || c.After.Type != inventory.ServiceTransport {
			continue
		}
		in := portSpace{c.Container.Site, c.After.Protocol}
		if reserved[in] == nil {
			reserved[in] = slices.Clone(a.store.reserved)
		}
		if c.After.ExternalPort != 0 {
			reserved[in] = append(reserved[in], c.After.ExternalPort)
		}
	}
	return reserved
}

func (a *applying) writeVolumes() error {
	return each(a.changes.Volumes, func(c *VolumeChange) error {
		if c.After == nil || c.Err != nil {
			return nil
		}
		if c.Container.Err != nil {
			c.Err = ErrRefused
			return nil
		}
		c.After.ContainerID = c.Container.After.ID
		return writeChange(a, &c.Change, func(tx *gorm.DB) error {
			if c.Before == nil {
				return placeVolume(tx, c.After, *c.Container.Site.After, *c.Container.After)
			}
			return saveVolume(tx, *c.Before, c.After)
		})
	})
}

// checkSites looks at whether the settings of a changed site go with what is in
// it by now. What is in it was checked against the settings.
func (a *applying) checkSites() error {
	return each(a.changes.Sites, func(c *SiteChange) error {
		return writeChange(a, &c.Change, func(tx *gorm.DB) error { return checkSite(tx, *c.After) })
	})
}

// checkDomains looks at whether a changed domain goes with the services under
// it, also those of other sites.
func (a *applying) checkDomains() error {
	return each(a.changes.Domains, func(c *DomainChange) error {
		return writeChange(a, &c.Change, func(tx *gorm.DB) error {
			_, err := namesUnder(tx, *c.After)
			return err
		})
	})
}
