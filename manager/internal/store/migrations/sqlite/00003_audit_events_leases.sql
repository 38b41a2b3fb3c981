-- +goose Up

-- Who did what. What an entry names may be gone: it refers to nothing.
CREATE TABLE audit (
  id               INTEGER PRIMARY KEY AUTOINCREMENT,
  at               DATETIME NOT NULL,
  actor_kind       TEXT NOT NULL,
  actor_id         INTEGER NOT NULL DEFAULT 0,
  actor_name       TEXT NOT NULL DEFAULT '',
  actor_address    TEXT NOT NULL DEFAULT '',
  actor_request_id TEXT NOT NULL DEFAULT '',
  action           TEXT NOT NULL CHECK (action <> ''),
  resource         TEXT NOT NULL CHECK (resource <> ''),
  resource_id      INTEGER NOT NULL DEFAULT 0,
  name             TEXT NOT NULL DEFAULT '',
  site_id          INTEGER NOT NULL DEFAULT 0,
  old_values       TEXT NOT NULL DEFAULT '',
  new_values       TEXT NOT NULL DEFAULT '',
  times            INTEGER NOT NULL DEFAULT 1
);
CREATE INDEX audit_at ON audit (at);
CREATE INDEX audit_resource ON audit (resource, resource_id);
CREATE INDEX audit_site ON audit (site_id);

-- What happened to agents, as their check-ins and their silence tell.
CREATE TABLE events (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  at       DATETIME NOT NULL,
  site_id  INTEGER NOT NULL,
  agent_id INTEGER NOT NULL,
  hostname TEXT NOT NULL,
  kind     TEXT NOT NULL CHECK (kind <> ''),
  severity TEXT NOT NULL CHECK (severity IN ('info', 'warning', 'error')),
  summary  TEXT NOT NULL,
  detail   TEXT NOT NULL DEFAULT ''
);
CREATE INDEX events_at ON events (at);
CREATE INDEX events_agent ON events (agent_id, at);
CREATE INDEX events_site ON events (site_id, at);

-- Which manager does what only one of them may do at a time. Who holds a lease
-- counts its renewals up; nobody compares the clocks of two hosts.
CREATE TABLE leases (
  name           TEXT PRIMARY KEY,
  holder         TEXT NOT NULL,
  renewals       INTEGER NOT NULL,
  renewed_at     DATETIME NOT NULL,
  unbroken_since DATETIME NOT NULL
);

-- Since when an agent counts as gone, and how many of its reports said something
-- new: a manager that remembers another number than this has missed some.
ALTER TABLE agents ADD COLUMN offline_at DATETIME;
ALTER TABLE agents ADD COLUMN told INTEGER NOT NULL DEFAULT 0;
CREATE INDEX agents_offline ON agents (id) WHERE offline_at IS NOT NULL;
