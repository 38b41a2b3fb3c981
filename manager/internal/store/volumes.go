package store

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"opensource.internal/manager/internal/inventory"
)

// VolumeStatus says whether a volume's directory is there.
type VolumeStatus string

// The states of a volume.
const (
	VolumePending VolumeStatus = "pending" // no agent has told yet
	VolumeReady   VolumeStatus = "ready"
	VolumeFailed  VolumeStatus = "failed" // StatusMessage says why
)

// Volume is a stored volume.
type Volume struct {
	ID               int64
	SiteID           int64
	ContainerID      int64
	inventory.Volume `gorm:"embedded"`
	// HostPath, UID and GID are decided when the volume is created and never
	// change.
	HostPath string
	UID      int64 `gorm:"column:uid"`
	GID      int64 `gorm:"column:gid"`

	Status        VolumeStatus `audit:"-"`
	StatusMessage string       `audit:"-"` // also a note on a ready volume
	ReportedAt    *time.Time   `audit:"-"` // when the status last changed by a check-in
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// VolumeFilter chooses volumes. Zero fields choose all.
type VolumeFilter struct {
	SiteID      int64
	ContainerID int64
	Status      VolumeStatus
	Mode        string
}

// Who owns a new volume's directory, as the site's agent sees it: root of an
// unprivileged container with the id map that Proxmox gives by default.
const (
	VolumeUID = 100000
	VolumeGID = 100000
)

var volumeSort = map[string]string{
	"name": "name", "mountPath": "mount_path", "hostPath": "host_path", "status": "status", "container": ofContainer("volumes"),
	"createdAt": "created_at", "updatedAt": "updated_at",
}

// ListVolumes returns a page of volumes and the number of all that match.
// Sort: id, name, mountPath, hostPath, status, container, createdAt, updatedAt.
func (s *Store) ListVolumes(ctx context.Context, filter VolumeFilter, opts ListOptions) ([]Volume, int64, error) {
	query := where(s.read.WithContext(ctx), "site_id", filter.SiteID)
	query = where(query, "container_id", filter.ContainerID)
	query = where(query, "mode", filter.Mode)
	return list[Volume](where(query, "status", filter.Status), opts, volumeSort, "name", "mount_path", "host_path", "status_message", ofContainer("volumes"))
}

// GetVolume returns a volume or ErrNotFound.
func (s *Store) GetVolume(ctx context.Context, id int64) (Volume, error) {
	return get[Volume](s.reader(ctx), id)
}

// CreateVolume stores a new volume of a container, with the host path derived
// from site, owner, container and name. Errors: ErrNotFound (no such
// container), *InvalidError, *ConflictError.
func (s *Store) CreateVolume(ctx context.Context, containerID int64, volume inventory.Volume) (Volume, error) {
	if err := volume.Normalise(); err != nil {
		return Volume{}, err
	}
	row := Volume{ContainerID: containerID, Volume: volume}
	err := s.update(ctx, func(tx *gorm.DB) error { return createVolume(tx, &row) })
	return row, err
}

// createVolume stores a normalised volume of a container.
func createVolume(tx *gorm.DB, row *Volume) error {
	container, err := get[Container](tx, row.ContainerID)
	if err != nil {
		return err
	}
	site, err := get[Site](tx, container.SiteID)
	if err != nil {
		return err
	}
	return placeVolume(tx, row, site, container)
}

// placeVolume decides where a volume is, and stores it. One that comes back has its
// place already.
func placeVolume(tx *gorm.DB, row *Volume, site Site, container Container) (err error) {
	if row.HostPath == "" {
		row.HostPath, err = inventory.VolumePath(site.VolumesRoot, site.ID, container.Owner, container.Hostname, row.Name)
		if err != nil {
			return invalid("name", "%v", err)
		}
		row.UID, row.GID = VolumeUID, VolumeGID
	}
	row.SiteID, row.ContainerID, row.Status = site.ID, container.ID, VolumePending
	return insert(tx, row, row.unique()...)
}

// UpdateVolume applies change to a volume. The host path stays. A change of
// mode makes it pending again. Errors: those of change, ErrNotFound,
// *InvalidError, *ConflictError.
func (s *Store) UpdateVolume(ctx context.Context, id int64, change func(*inventory.Volume) error) (Volume, error) {
	var row Volume
	err := s.update(ctx, func(tx *gorm.DB) (err error) {
		if row, err = get[Volume](tx, id); err != nil {
			return err
		}
		before := row
		if err := change(&row.Volume); err != nil {
			return err
		}
		if err := row.Volume.Normalise(); err != nil {
			return err
		}
		return saveVolume(tx, before, &row)
	})
	return row, err
}

// saveVolume stores a volume that was changed and normalised.
func saveVolume(tx *gorm.DB, before Volume, row *Volume) error {
	if row.Mode != before.Mode {
		row.Status, row.StatusMessage = VolumePending, ""
	}
	return save(tx, before, row, row.unique()...)
}

func (v Volume) subject() Subject {
	return Subject{Resource: "volume", ID: v.ID, Name: v.Name, SiteID: v.SiteID}
}

func (v Volume) unique() []unique {
	return []unique{
		{
			field: "name", message: fmt.Sprintf("the container already has a volume %q", v.Name),
			holders: `SELECT 'volume "' || name || '"' FROM volumes WHERE container_id = ? AND name = ? AND id <> ?`,
			args:    []any{v.ContainerID, v.Name, v.ID},
		},
		{
			field: "mountPath", message: fmt.Sprintf("the container already mounts a volume at %s", v.MountPath),
			holders: `SELECT 'volume "' || name || '"' FROM volumes WHERE container_id = ? AND mount_path = ? AND id <> ?`,
			args:    []any{v.ContainerID, v.MountPath, v.ID},
		},
		{
			// A container that was renamed keeps its paths.
			field: "name", message: fmt.Sprintf("the directory %s belongs to a volume of another container", v.HostPath),
			holders: `SELECT 'volume "' || v.name || '" of container "' || c.hostname || '"'
				FROM volumes v JOIN containers c ON c.id = v.container_id WHERE v.site_id = ? AND v.host_path = ? AND v.id <> ?`,
			args: []any{v.SiteID, v.HostPath, v.ID},
		},
	}
}

// DeleteVolume deletes a volume's record or returns ErrNotFound. Its directory
// stays.
func (s *Store) DeleteVolume(ctx context.Context, id int64) error {
	return s.update(ctx, func(tx *gorm.DB) error { return removeOne[Volume](tx, id) })
}
