package show

import (
	"time"

	"opensource.internal/manager/internal/store"
)

// Site is a site with its settings.
type Site struct {
	ID             int64     `json:"id"`
	Name           string    `json:"name" example:"lab"`
	InternalDomain *string   `json:"internalDomain"`
	DHCPRange      *string   `json:"dhcpRange"`
	SubnetMask     *string   `json:"subnetMask"`
	Gateway        *string   `json:"gateway"`
	DNSForwarders  *string   `json:"dnsForwarders"`
	ExternalIP     *string   `json:"externalIp"`
	VolumesRoot    *string   `json:"volumesRoot"`
	PortRange      *string   `json:"portRange"`
	Publishing     string    `json:"publishing" enum:"auto,manual"`
	Pin            *Pin      `json:"pin" doc:"Set if agents get another revision than the latest one"`
	CreatedAt      time.Time `json:"createdAt"`
	UpdatedAt      time.Time `json:"updatedAt"`
}

// SiteOf shows a site with its pin.
func SiteOf(s store.Site, pinned *Pin) Site {
	return Site{
		Publishing: s.Publishing, Pin: pinned,
		ID: s.ID, Name: s.Name, InternalDomain: Text(s.InternalDomain), DHCPRange: Text(s.DHCPRange),
		SubnetMask: Text(s.SubnetMask), Gateway: Text(s.Gateway), DNSForwarders: Text(s.DNSForwarders),
		ExternalIP: Text(s.ExternalIP), VolumesRoot: Text(s.VolumesRoot), PortRange: Text(s.PortRange),
		CreatedAt: s.CreatedAt.UTC(), UpdatedAt: s.UpdatedAt.UTC(),
	}
}
