-- +goose Up

-- What agents tell, counted by site, for live pages of this and every other
-- process. It is a table of its own: what every check-in reads stays short.
CREATE TABLE report_counters (
  site_id INTEGER PRIMARY KEY,
  version INTEGER NOT NULL
);
-- +goose StatementBegin
CREATE TRIGGER agents_report_insert AFTER INSERT ON agents BEGIN
  INSERT INTO report_counters (site_id, version) VALUES (NEW.site_id, 1)
    ON CONFLICT (site_id) DO UPDATE SET version = version + 1;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER agents_report_update AFTER UPDATE OF changed_at ON agents BEGIN
  INSERT INTO report_counters (site_id, version) VALUES (NEW.site_id, 1)
    ON CONFLICT (site_id) DO UPDATE SET version = version + 1;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER agents_report_delete AFTER DELETE ON agents BEGIN
  INSERT INTO report_counters (site_id, version) VALUES (OLD.site_id, 1)
    ON CONFLICT (site_id) DO UPDATE SET version = version + 1;
END;
-- +goose StatementEnd
