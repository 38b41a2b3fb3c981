package store

import (
	"context"
	"time"

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

	Status        VolumeStatus
	StatusMessage string     // also a note on a ready volume
	ReportedAt    *time.Time // when the status last changed by a check-in
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// VolumeFilter chooses volumes. Zero fields choose all.
type VolumeFilter struct {
	SiteID      int64
	ContainerID int64
	Status      VolumeStatus
}

// ListVolumes returns a page of volumes and the number of all that match.
// Sort: id, name, mountPath, hostPath, status, createdAt, updatedAt.
func (s *Store) ListVolumes(ctx context.Context, filter VolumeFilter, opts ListOptions) ([]Volume, int64, error) {
	panic("soon")
}

// GetVolume returns a volume or ErrNotFound.
func (s *Store) GetVolume(ctx context.Context, id int64) (Volume, error) { panic("soon") }

// CreateVolume stores a new volume of a container, with the host path derived
// from site, owner, container and name. Errors: ErrNotFound (no such
// container), *InvalidError, *ConflictError.
func (s *Store) CreateVolume(ctx context.Context, containerID int64, volume inventory.Volume) (Volume, error) {
	panic("soon")
}

// UpdateVolume applies change to a volume. The host path stays. A change of
// mode makes it pending again. Errors: those of change, ErrNotFound,
// *InvalidError, *ConflictError.
func (s *Store) UpdateVolume(ctx context.Context, id int64, change func(*inventory.Volume) error) (Volume, error) {
	panic("soon")
}

// DeleteVolume deletes a volume's record or returns ErrNotFound. Its directory
// stays.
func (s *Store) DeleteVolume(ctx context.Context, id int64) error { panic("soon") }
