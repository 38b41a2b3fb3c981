-- +goose Up

-- An administrator's word that what a site's snapshot does not have any more is
-- meant to be gone. It holds for the inventory as it was when it was given: the
-- next change takes it away, whoever makes it.
CREATE TABLE confirmed_removals (
  site_id      INTEGER PRIMARY KEY REFERENCES sites (id) ON DELETE CASCADE,
  confirmed_by TEXT NOT NULL,
  confirmed_at DATETIME NOT NULL
);
-- +goose StatementBegin
CREATE TRIGGER changed_unconfirm INSTEAD OF INSERT ON changed WHEN NEW.scope = 'site' BEGIN
  DELETE FROM confirmed_removals WHERE site_id = NEW.id;
END;
-- +goose StatementEnd

-- Two things make caches read a site anew without being a change of its
-- inventory: the word itself, and what agents say about its volumes.
-- +goose StatementBegin
CREATE TRIGGER confirmed_removals_count AFTER INSERT ON confirmed_removals BEGIN
  UPDATE change_counters SET version = version + 1 WHERE scope = 'site' AND id = NEW.site_id;
END;
-- +goose StatementEnd
DROP TRIGGER volumes_count_update;
-- +goose StatementBegin
CREATE TRIGGER volumes_count_update AFTER UPDATE OF id, site_id, container_id, name, mount_path, mode, host_path, uid, gid ON volumes BEGIN
  INSERT INTO changed VALUES ('site', OLD.site_id);
  INSERT INTO changed SELECT 'site', NEW.site_id WHERE NEW.site_id <> OLD.site_id;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER volumes_count_result AFTER UPDATE OF status, status_message ON volumes BEGIN
  UPDATE change_counters SET version = version + 1 WHERE scope = 'site' AND id = NEW.site_id;
END;
-- +goose StatementEnd

-- What an agent found edited on its host it tells once. People look later: by
-- service, the last of it and when it was told.
ALTER TABLE agents ADD COLUMN drift TEXT NOT NULL DEFAULT '{}';
