package preflight

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// settledAfter is when the next pass should have cleared away what a killed one
// has left.
const settledAfter = 5 * time.Minute

// leftovers tells of what a killed pass has left and no other has cleared away,
// and of what an administrator may think nginx reads.
func leftovers(_ context.Context, o *Options) []Finding {
	paths := o.Facts.Paths
	folders := []string{
		filepath.Dir(paths.NGINXConf), filepath.Dir(paths.DNSMasqConf), paths.DNSMasqDir, o.StateDirectory,
	}
	var found []Finding
	for _, folder := range slices.Compact(folders) {
		entries, err := os.ReadDir(folder) // one that is not there holds none
		if os.IsPermission(err) {
			found = append(found, warn("run sudo opensource-agent check", "not known: may not read %s", folder))
		}
		for _, entry := range entries {
			if !strings.HasPrefix(entry.Name(), ".") || !strings.Contains(entry.Name(), ".opensource-agent.") {
				continue
			}
			if info, err := entry.Info(); err == nil && o.Now().Sub(changed(info)) > settledAfter {
				found = append(found, warn("sudo opensource-agent", "a pass that was cut short has left %s", filepath.Join(folder, entry.Name())))
			}
		}
	}
	if unread := o.unreadSites(); len(unread) > 0 {
		found = append(found, warn("move what is needed to /etc/nginx/conf.d/NAME.conf",
			"nginx.conf of the agent does not read /etc/nginx/sites-enabled: %s", strings.Join(unread, ", ")))
	}
	if len(found) == 0 {
		return list(ok("none"))
	}
	return found
}

// unreadSites are those in Debian's folder for sites, besides Debian's own.
func (o *Options) unreadSites() []string {
	entries, _ := os.ReadDir(filepath.Join(filepath.Dir(o.Facts.Paths.NGINXConf), "sites-enabled"))
	var names []string
	for _, entry := range entries {
		if entry.Name() != "default" {
			names = append(names, entry.Name())
		}
	}
	return names
}

// changed is when a file got its name: a kept version is a second name of a
// file that may be old.
func changed(info os.FileInfo) time.Time {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(stat.Ctim.Unix())
	}
	return info.ModTime()
}
