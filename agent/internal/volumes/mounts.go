package volumes

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// mountTable is /proc/self/mountinfo by mount id. Whether a directory may be
// used is decided by the id of the mount that was actually reached: device
// numbers do not tell a bind mount from its disk, and the longest mount point
// may be hidden below a later mount.
type mountTable struct {
	root int // the mount of the agent's root directory
	byID map[int]*mountinfo.Info
}

func readMounts() (*mountTable, error) {
	root, err := rootMount()
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return &mountTable{root: root, byID: parseMounts(content)}, nil
}

// parseMounts reads the lines it understands. An id that occurs twice is none:
// some text has slipped a line in.
func parseMounts(content []byte) map[int]*mountinfo.Info {
	byID := map[int]*mountinfo.Info{}
	for _, info := range understood(content) {
		if info.ID <= 0 {
			continue
		}
		if _, twice := byID[info.ID]; twice {
			byID[info.ID] = nil
			continue
		}
		byID[info.ID] = info
	}
	return byID
}

// understood parses all lines at once, and one by one if there is any that
// cannot be parsed.
func understood(content []byte) []*mountinfo.Info {
	if all, err := mountinfo.GetMountsFromReader(bytes.NewReader(content), nil); err == nil {
		return all
	}
	var some []*mountinfo.Info
	for line := range bytes.Lines(content) {
		if one, err := mountinfo.GetMountsFromReader(bytes.NewReader(line), nil); err == nil {
			some = append(some, one...)
		}
	}
	return some
}

// check refuses a directory that is not on storage of its own. hostPath is the
// volume it was reached for.
func (t *mountTable) check(d dir, hostPath string) error {
	id, err := d.mountID()
	if err != nil {
		return err
	}
	return t.checkID(id, d.String(), hostPath)
}

func (t *mountTable) checkID(id int, path, hostPath string) error {
	if id == t.root {
		return fmt.Errorf("%q is on the root filesystem, not on a separate mount: "+
			"mount the storage that %q is to lie on", path, hostPath)
	}
	mount := t.byID[id]
	if mount == nil {
		return fmt.Errorf("the mount that %q is on (id %d) is not in /proc/self/mountinfo", path, id)
	}
	switch {
	case isVolatile(mount.FSType):
		return fmt.Errorf("%q is on a %s (mounted at %q), which forgets its files: mount lasting storage there",
			path, mount.FSType, mount.Mountpoint)
	case isPseudo(mount.FSType):
		return fmt.Errorf("%q is on a pseudo filesystem (%s, mounted at %q), which holds no files: mount storage there",
			path, mount.FSType, mount.Mountpoint)
	case hasOption(mount.Options, "ro") || hasOption(mount.VFSOptions, "ro"):
		return fmt.Errorf("%q is on a read-only mount (at %q): mount it read-write", path, mount.Mountpoint)
	}
	return nil
}

// pointOf guesses where the mount is that path lies on, by the text alone,
// since looking could hang.
func (t *mountTable) pointOf(path string) string {
	longest := "/"
	for _, mount := range t.byID {
		if mount == nil || len(mount.Mountpoint) <= len(longest) {
			continue
		}
		if path == mount.Mountpoint || strings.HasPrefix(path, mount.Mountpoint+"/") {
			longest = mount.Mountpoint
		}
	}
	return longest
}

// hasOption looks for one whole word of a comma-separated list.
func hasOption(options, word string) bool {
	return slices.Contains(strings.Split(options, ","), word)
}

func isVolatile(fsType string) bool { return fsType == "tmpfs" || fsType == "ramfs" }

// isPseudo knows the filesystems of filesystems(5) and the kernel's
// Documentation/filesystems that show something else than stored files.
func isPseudo(fsType string) bool {
	switch fsType {
	case "autofs", "bdev", "binder", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "cpuset", "debugfs",
		"devfs", "devpts", "devtmpfs", "efivarfs", "fuse.lxcfs", "fusectl", "hugetlbfs", "mqueue", "nfsd", "nsfs",
		"openpromfs", "pipefs", "proc", "pstore", "resctrl", "rpc_pipefs", "securityfs", "selinuxfs", "smackfs",
		"sockfs", "sysfs", "tracefs":
		return true
	}
	return false
}

func rootMount() (int, error) {
	root, err := openRoot("")
	if err != nil {
		return 0, err
	}
	defer root.close()
	return root.mountID()
}
