// Package storetest is the suite that every database behind the store has to
// pass, and the fixtures that tests of other packages build on.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

// World is a site with one of everything.
type World struct {
	Site      store.Site
	Node      store.Node
	Container store.Container
	Domain    store.ExternalDomain
	HTTP      store.Service
	Transport store.Service
	DNS       store.Service
	Volume    store.Volume
}

// NewWorld stores a World whose names and addresses carry the number n, so that
// several fit into one database.
func NewWorld(t testing.TB, s *store.Store, n int) World {
	t.Helper()
	ctx := t.Context()
	var w World
	w.Site = must(s.CreateSite(ctx, inventory.Site{
		Name: fmt.Sprintf("site%d", n), InternalDomain: fmt.Sprintf("site%d.internal", n),
		DHCPRange: "192.0.2.100,192.0.2.200", SubnetMask: "255.255.255.0", Gateway: "192.0.2.1",
		DNSForwarders: "9.9.9.9,1.1.1.1",
	}))(t)
	w.Node = must(s.CreateNode(ctx, w.Site.ID, inventory.Node{Name: "pve1", IPv4Address: "192.0.2.10"}))(t)
	w.Container = must(s.CreateContainer(ctx, w.Site.ID, inventory.Container{
		NodeID: w.Node.ID, Hostname: "web", Owner: "alice", IPv4Address: "192.0.2.101", MACAddress: "02:00:00:00:00:01",
	}))(t)
	w.Domain = must(s.CreateExternalDomain(ctx, inventory.ExternalDomain{Name: fmt.Sprintf("example%d.com", n)}))(t)
	w.HTTP = must(s.CreateService(ctx, w.Container.ID, inventory.Service{
		Type: inventory.ServiceHTTP, InternalPort: 8080, ExternalHostname: "app", ExternalDomainID: &w.Domain.ID,
	}))(t)
	w.Transport = must(s.CreateService(ctx, w.Container.ID, inventory.Service{
		Type: inventory.ServiceTransport, InternalPort: 22, Protocol: "tcp",
	}))(t)
	w.DNS = must(s.CreateService(ctx, w.Container.ID, inventory.Service{
		Type: inventory.ServiceDNS, InternalPort: 5060, DNSName: "_sip._tcp",
	}))(t)
	w.Volume = must(s.CreateVolume(ctx, w.Container.ID, inventory.Volume{Name: "data", MountPath: "/data", Mode: "rw"}))(t)
	return w
}

// AddContainers adds n containers with an HTTP service each to a world, in one
// go: for figures, not for correctness.
func AddContainers(t testing.TB, s *store.Store, w World, n int) {
	t.Helper()
	ctx := context.Background()
	for i := range n {
		container := must(s.CreateContainer(ctx, w.Site.ID, inventory.Container{
			NodeID: w.Node.ID, Hostname: fmt.Sprintf("c%d", i), Owner: "bob",
			IPv4Address: fmt.Sprintf("198.18.%d.%d", i/250, i%250+1),
			MACAddress:  fmt.Sprintf("02:00:01:00:%02x:%02x", i/256, i%256),
		}))(t)
		must(s.CreateService(ctx, container.ID, inventory.Service{
			Type: inventory.ServiceHTTP, InternalPort: 8080, ExternalHostname: fmt.Sprintf("c%d", i), ExternalDomainID: &w.Domain.ID,
		}))(t)
	}
}

// Inventory returns what a site's snapshot is built from, and publishes nothing.
func Inventory(t testing.TB, s *store.Store, siteID int64) store.Inventory {
	t.Helper()
	var read store.Inventory
	enough := errors.New("enough")
	_, err := s.Publish(t.Context(), siteID, func(i store.Inventory) ([]byte, string, error) {
		read = i
		return nil, "", enough
	})
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	return read
}

// must ends the test on an error; in two calls, since Go spreads results over
// arguments only where there are no others.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
