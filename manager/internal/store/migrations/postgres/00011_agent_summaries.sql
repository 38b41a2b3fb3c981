-- +goose Up

-- What lists of agents are filtered and sorted by, taken from the report whenever
-- that is written. A severity of -1 has not been: whoever migrates does that next.
ALTER TABLE agents ADD COLUMN severity BIGINT NOT NULL DEFAULT -1;
ALTER TABLE agents ADD COLUMN held BIGINT NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN address TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE agents ADD COLUMN address_order TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE agents ADD COLUMN version TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE agents ADD COLUMN version_order TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE agents ADD COLUMN running_etag TEXT NOT NULL DEFAULT '';

CREATE INDEX volumes_failed ON volumes (site_id) WHERE status = 'failed';
-- Which revision has a tag, without reading its data.
CREATE INDEX revisions_etag ON revisions (site_id, etag, number);
