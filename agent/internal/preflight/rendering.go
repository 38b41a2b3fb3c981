package preflight

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/render"
)

// templates tells which templates are an administrator's own.
func templates(_ context.Context, o *Options) []Finding {
	used := o.Templates.Overridden()
	var found []Finding
	for _, name := range used {
		found = append(found, o.override(name))
	}
	err := filepath.WalkDir(o.Overrides, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(o.Overrides, path)
		if err == nil && !slices.Contains(used, name) {
			found = append(found, warn("give it the name of one in "+o.Originals+", or remove it",
				"%s takes the place of no template", path))
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		found = append(found, warn("ls -lR "+o.Overrides, "%v", err))
	}
	if len(found) == 0 {
		return list(ok("none is overridden"))
	}
	return found
}

// override compares the age of an override with that of its original: an
// upgrade may have brought what the override lacks.
func (o *Options) override(name string) Finding {
	own, original := filepath.Join(o.Overrides, name), filepath.Join(o.Originals, name)
	ours, errOwn := os.Stat(own)
	packages, errOriginal := os.Stat(original)
	if errOwn == nil && errOriginal == nil && ours.ModTime().Before(packages.ModTime()) {
		return warn("diff -u "+original+" "+own+"; take over what is new, and touch it",
			"%s is older than the original of this version", own)
	}
	return ok("%s is used instead of the original", own)
}

// rendering tries to render what a pass would, with what is known.
func rendering(_ context.Context, o *Options) []Finding {
	if o.Unread {
		return list(o.notKnown())
	}
	snapshot := checkin.Bootstrap()
	if o.Snapshot != nil {
		snapshot = *o.Snapshot
	}
	var found []Finding
	if o.Host.Host.NGINX != nil {
		found = append(found, rendered("nginx", snapshot, o, render.NGINX)...)
	}
	return append(found, rendered("dnsmasq", snapshot, o, render.DNSMasq)...)
}

func rendered(name string, snapshot checkin.Snapshot, o *Options,
	make func(checkin.Snapshot, render.Facts, *render.Templates) (render.Result, error),
) []Finding {
	result, err := make(snapshot, o.Facts, o.Templates)
	if err != nil {
		return list(fail("correct the template or the site's setting that is named", "%s: %v", name, err))
	}
	var found []Finding
	for _, left := range result.LeftOut {
		found = append(found, warn("correct it in the manager", "%s: left out is %s %s: %s", name, left.Kind, left.Name, left.Reason))
	}
	if len(found) > 0 {
		return found
	}
	if result.Skipped != "" {
		return list(ok("%s", result.Skipped))
	}
	return list(ok("%s: nothing is left out", name))
}
