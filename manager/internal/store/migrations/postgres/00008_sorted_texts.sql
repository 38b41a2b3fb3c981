-- +goose Up

-- Texts that lists are sorted by are in the order of SQLite, whatever the locale
-- of the database is.
ALTER TABLE api_keys ALTER COLUMN hostname TYPE TEXT COLLATE "C";
ALTER TABLE enrollments ALTER COLUMN hostname TYPE TEXT COLLATE "C";
ALTER TABLE notification_targets ALTER COLUMN name TYPE TEXT COLLATE "C";
