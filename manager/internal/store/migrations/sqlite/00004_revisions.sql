-- +goose Up

-- Whether a site's changes are published by themselves, or wait for somebody.
ALTER TABLE sites ADD COLUMN publishing TEXT NOT NULL DEFAULT 'auto' CHECK (publishing IN ('auto', 'manual'));

-- What a revision changed and who did that. audited is the last entry of the
-- audit log that goes with it.
ALTER TABLE revisions ADD COLUMN summary TEXT NOT NULL DEFAULT '{}';
ALTER TABLE revisions ADD COLUMN changed_by TEXT NOT NULL DEFAULT '[]';
ALTER TABLE revisions ADD COLUMN published_by TEXT NOT NULL DEFAULT '';
ALTER TABLE revisions ADD COLUMN note TEXT NOT NULL DEFAULT '';
ALTER TABLE revisions ADD COLUMN audited INTEGER NOT NULL DEFAULT 0;
CREATE INDEX revisions_created ON revisions (created_at);

-- What agents of a site get instead of the latest revision. The revision is
-- looked for at the end of the transaction: a site goes with both.
CREATE TABLE pins (
  site_id   INTEGER PRIMARY KEY REFERENCES sites (id) ON DELETE CASCADE,
  revision  INTEGER NOT NULL,
  reason    TEXT NOT NULL CHECK (reason <> ''),
  pinned_by TEXT NOT NULL,
  pinned_at DATETIME NOT NULL,
  FOREIGN KEY (site_id, revision) REFERENCES revisions (site_id, number) DEFERRABLE INITIALLY DEFERRED
);

-- A pin makes caches read the site anew. It is no change of the inventory.
-- +goose StatementBegin
CREATE TRIGGER pins_count_insert AFTER INSERT ON pins BEGIN
  UPDATE change_counters SET version = version + 1 WHERE scope = 'site' AND id = NEW.site_id;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER pins_count_update AFTER UPDATE ON pins BEGIN
  UPDATE change_counters SET version = version + 1 WHERE scope = 'site' AND id = NEW.site_id;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER pins_count_delete AFTER DELETE ON pins BEGIN
  UPDATE change_counters SET version = version + 1 WHERE scope = 'site' AND id = OLD.site_id;
END;
-- +goose StatementEnd
