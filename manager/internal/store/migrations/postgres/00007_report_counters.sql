-- +goose Up

-- What agents tell, counted by site, for live pages of this and every other
-- process. It is a table of its own: what every check-in reads stays short.
CREATE TABLE report_counters (
  site_id BIGINT PRIMARY KEY,
  version BIGINT NOT NULL
);
-- +goose StatementBegin
CREATE FUNCTION agents_report() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO report_counters AS c (site_id, version)
    VALUES (CASE WHEN TG_OP = 'DELETE' THEN OLD.site_id ELSE NEW.site_id END, 1)
    ON CONFLICT (site_id) DO UPDATE SET version = c.version + 1;
  PERFORM pg_notify('changes', 'reports');
  RETURN NULL;
END;
$$;
-- +goose StatementEnd
CREATE TRIGGER agents_report AFTER INSERT OR DELETE OR UPDATE OF changed_at ON agents
  FOR EACH ROW EXECUTE FUNCTION agents_report();
