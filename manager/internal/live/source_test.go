package live

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store/storetest"
)

// A site whose snapshot cannot be built is shown without one. It keeps nothing
// from the others, and is logged once until it is well again.
func TestASiteWithoutASnapshotIsToldOf(t *testing.T) {
	at := storetest.Database(t)
	s := storetest.OpenAt(t, at)
	var log bytes.Buffer
	d := newDatabase(s, snapshot.NewCache(s), slog.New(slog.NewTextHandler(&log, nil)))
	broken, well := storetest.NewWorld(t, s, 1).Site.ID, storetest.NewWorld(t, s, 2).Site.ID
	if _, err := s.Publish(t.Context(), broken, snapshot.Encode); err != nil {
		t.Fatal(err)
	}
	look := func() map[int64]bool {
		t.Helper()
		found, err := d.changes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		has := map[int64]bool{}
		for _, c := range found {
			if told, is := c.data.(siteData); is {
				has[told.ID] = told.ETag != nil
			}
		}
		return has
	}
	rename := func(id int64, name, publishing string) {
		t.Helper()
		_, err := s.UpdateSite(t.Context(), id, func(site *inventory.Site) error {
			site.Name, site.Publishing = name, publishing
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	look() // remembers how things stand
	if _, err := storetest.Raw(t, at).Exec("UPDATE revisions SET data = 'junk'"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		rename(broken, name, inventory.PublishManual)
		rename(well, name+"-well", inventory.PublishAuto)
		if has := look(); len(has) != 2 || has[broken] || !has[well] {
			t.Errorf("%s: %v", name, has)
		}
	}
	if logged := strings.Count(log.String(), "without its snapshot"); logged != 1 {
		t.Errorf("logged %d times: %s", logged, &log)
	}
	rename(broken, "three", inventory.PublishAuto)
	if has := look(); !has[broken] {
		t.Errorf("well again: %v", has)
	}
	rename(well, "four", inventory.PublishAuto)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if found, err := d.changes(t.Context()); err == nil {
		t.Errorf("without the database: %v", found)
	}
}
