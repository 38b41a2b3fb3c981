package dashboard

import (
	"fmt"
	"net/http"
	"net/url"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

func volumesPath(containerID int64) string { return containerPath(containerID) + "/volumes" }
func volumePath(id int64) string           { return fmt.Sprintf("/volumes/%d", id) }

// volumeFields are what an administrator sets of a volume.
func volumeFields(vol *inventory.Volume) []*field {
	return []*field{
		text("name", "Name", &vol.Name).required().hint("The last part of its path on the host, such as data. The path stays once the volume is there"),
		text("mountPath", "Mounted at", &vol.MountPath).required().hint("In the container, such as /var/lib/data"),
		choice("mode", "Mode", &vol.Mode, option{"rw", "Read and write"}, option{"ro", "Only read"}),
	}
}

// volumeStatus is what is known about a volume's directory.
func volumeStatus(vol store.Volume) cell {
	switch vol.Status {
	case store.VolumeReady:
		return cell{Text: "ready", Class: good, Note: vol.StatusMessage}
	case store.VolumeFailed:
		return cell{Text: "failed", Class: bad, Note: vol.StatusMessage}
	}
	return cell{Text: "waits for the agent", Class: "neutral", Note: vol.StatusMessage}
}

// volumesOf lists the volumes of a container.
func (d *dashboard) volumesOf(v *visit, c store.Container) (*listing, error) {
	l := &listing{Title: "Volumes", Columns: []column{{"Volume", ""}, {"Mounted at", ""}, {"Path on the host", ""}, {"Status", ""}}, Empty: "This container has no volume."}
	if v.canWrite() {
		l.New = crumb{"Add a volume", volumesPath(c.ID) + "/new"}
	}
	volumes, _, err := d.store.ListVolumes(v.Request.Context(), store.VolumeFilter{ContainerID: c.ID}, store.ListOptions{Limit: store.All})
	for _, vol := range volumes {
		l.Rows = append(l.Rows, row{fmt.Sprintf("volume-%d", vol.ID), []cell{
			{Text: vol.Name, Link: volumePath(vol.ID)},
			{Text: vol.MountPath},
			{Text: vol.HostPath, Copy: fmt.Sprintf("volume-%d-path", vol.ID)},
			volumeStatus(vol),
		}})
	}
	return l, err
}

// volumeRecord is all about one volume.
type volumeRecord struct {
	Path     string
	Status   cell
	Reported string // when the agent told
	Details  []detail
	Mount    string // the command by which Proxmox VE mounts it
	CanWrite bool
}

func (d *dashboard) volume(v *visit) error {
	site, c, vol, err := d.volumeOf(v)
	if err != nil {
		return err
	}
	view := volumeRecord{Path: volumePath(vol.ID), Status: volumeStatus(vol), Mount: mountCommand(vol), CanWrite: v.canWrite()}
	view.Details = []detail{
		{Name: "Container", cell: cell{Text: c.Hostname, Link: containerPath(c.ID)}},
		{Name: "Path on the host", cell: cell{Text: vol.HostPath, Copy: "path"}, Wide: true},
		{Name: "Owner there", cell: cell{Text: fmt.Sprintf("%d:%d", vol.UID, vol.GID), Note: "root of an unprivileged container"}},
	}
	view.Details = append(view.Details, details(volumeFields(&vol.Volume))[1:]...)
	p := v.page("Volume "+vol.Name, "/sites", withinContainer(site, c)...)
	p.Topics = siteTopics(site.ID)
	return v.show(http.StatusOK, p, volumePage(p, view))
}

// mountCommand has Proxmox VE mount a volume.
func mountCommand(vol store.Volume) string {
	options := vol.HostPath + ",mp=" + vol.MountPath
	if vol.Mode == "ro" {
		options += ",ro=1"
	}
	return "pct set CTID -mp0 " + options
}

func (d *dashboard) newVolume(v *visit) error {
	site, c, err := d.containerOf(v)
	if err != nil {
		return err
	}
	wanted := inventory.Volume{Mode: "rw"}
	f := &form{Fields: volumeFields(&wanted), Submit: "Add the volume", Cancel: containerPath(c.ID)}
	return v.fill(v.page("New volume of "+c.Hostname, "/sites", withinContainer(site, c)...), f, func(typed url.Values) (done, error) {
		if err := f.read(typed); err != nil {
			return done{}, err
		}
		vol, err := d.store.CreateVolume(v.Request.Context(), c.ID, wanted)
		return done{volumePath(vol.ID), "The volume was added. The site's agent makes its folder with its next pass.", site.ID}, err
	})
}

func (d *dashboard) editVolume(v *visit) error {
	site, c, vol, err := d.volumeOf(v)
	if err != nil {
		return err
	}
	path, before := volumePath(vol.ID), volumeFields(&vol.Volume)
	f := &form{Version: version(vol.Volume), Fields: volumeFields(&vol.Volume), Submit: "Save", Cancel: path}
	p := v.page("Edit the volume "+vol.Name, "/sites", append(withinContainer(site, c), crumb{vol.Name, path})...)
	return v.fill(p, f, func(typed url.Values) (done, error) {
		stored, err := d.store.UpdateVolume(v.Request.Context(), vol.ID, changing(f, typed, volumeFields))
		return saved(path, "volume", site.ID, before, volumeFields(&stored.Volume)), err
	})
}

func (d *dashboard) deleteVolume(v *visit) error {
	site, c, vol, err := d.volumeOf(v)
	if err != nil {
		return err
	}
	view := vanishing{
		What: fmt.Sprintf("volume %q", vol.Name), Cancel: volumePath(vol.ID), File: manifestPath(site.ID),
		Keeps: "The folder " + vol.HostPath + " stays on the site's host, with all that is in it.",
	}
	p := v.page("Delete the "+view.What+"?", "/sites", append(withinContainer(site, c), crumb{vol.Name, volumePath(vol.ID)})...)
	return v.confirm(p, view, func() (done, error) {
		err := d.store.DeleteVolume(v.Request.Context(), vol.ID)
		return done{containerPath(c.ID), fmt.Sprintf("The %s was deleted.", view.What), site.ID}, err
	})
}

// volumeOf is the volume of the address, with its container and site.
func (d *dashboard) volumeOf(v *visit) (site store.Site, c store.Container, vol store.Volume, err error) {
	id, err := v.id()
	if err != nil {
		return site, c, vol, err
	}
	if vol, err = d.store.GetVolume(v.Request.Context(), id); err != nil {
		return site, c, vol, err
	}
	site, c, err = d.containerWithSite(v, vol.ContainerID)
	return site, c, vol, err
}
