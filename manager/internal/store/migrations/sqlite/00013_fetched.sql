-- +goose Up

-- Which snapshot an agent was last given, and when for the first time: what it
-- tells itself of that comes when it is done.
ALTER TABLE agents ADD COLUMN fetched_etag TEXT NOT NULL DEFAULT '';
ALTER TABLE agents ADD COLUMN fetched_at DATETIME;
