-- +goose Up

-- An administrator's word that what a site's snapshot does not have any more is
-- meant to be gone. It holds for the inventory as it was when it was given: the
-- next change takes it away, whoever makes it.
CREATE TABLE confirmed_removals (
  site_id      BIGINT PRIMARY KEY REFERENCES sites (id) ON DELETE CASCADE,
  confirmed_by TEXT NOT NULL,
  confirmed_at TIMESTAMPTZ NOT NULL
);
-- +goose StatementBegin
CREATE FUNCTION changed_unconfirm() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.scope = 'site' THEN
    DELETE FROM confirmed_removals WHERE site_id = NEW.id;
  END IF;
  RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER changed_unconfirm INSTEAD OF INSERT ON changed FOR EACH ROW EXECUTE FUNCTION changed_unconfirm();

-- Two things make caches read a site anew without being a change of its
-- inventory: the word itself, and what agents say about its volumes.
-- +goose StatementBegin
CREATE FUNCTION site_reread() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE change_counters SET version = version + 1 WHERE scope = 'site' AND id = NEW.site_id;
  RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER confirmed_removals_count AFTER INSERT ON confirmed_removals FOR EACH ROW EXECUTE FUNCTION site_reread();
DROP TRIGGER volumes_count ON volumes;
CREATE TRIGGER volumes_count AFTER INSERT OR DELETE
  OR UPDATE OF id, site_id, container_id, name, mount_path, mode, host_path, uid, gid ON volumes
  FOR EACH ROW EXECUTE FUNCTION inventory_count();
CREATE TRIGGER volumes_count_result AFTER UPDATE OF status, status_message ON volumes FOR EACH ROW EXECUTE FUNCTION site_reread();

-- What an agent found edited on its host it tells once. People look later: by
-- service, the last of it and when it was told.
ALTER TABLE agents ADD COLUMN drift TEXT NOT NULL DEFAULT '{}';
