-- +goose Up

-- A counter moves once in a transaction, however much that changes. A row that
-- is updated again and again within one leaves a version behind each time, and
-- all of them are in the way of the next: ten thousand containers at once took a
-- minute. What a transaction has counted already is noted in a setting of its own.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION changed_count() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  noted TEXT := format('opensource_counted.%s_%s', NEW.scope, NEW.id);
BEGIN
  IF current_setting(noted, true) = pg_current_xact_id()::text THEN
    RETURN NEW;
  END IF;
  INSERT INTO change_counters (scope, id, version) VALUES (NEW.scope, NEW.id, 1)
    ON CONFLICT (scope, id) DO UPDATE SET version = change_counters.version + 1;
  PERFORM set_config(noted, pg_current_xact_id()::text, true);
  RETURN NEW;
END $$;
-- +goose StatementEnd
