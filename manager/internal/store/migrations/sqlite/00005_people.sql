-- +goose Up

-- Whoever signs in through a provider is known by its issuer and subject, never
-- by a name or an address; such a person has no password here. Sessions belong
-- to one epoch of a person: a new password and a suspension begin the next, so
-- that no session of before can come back, whatever was under way meanwhile.
ALTER TABLE users ADD COLUMN issuer TEXT NOT NULL DEFAULT '';
ALTER TABLE users ADD COLUMN subject TEXT NOT NULL DEFAULT '';
ALTER TABLE users ADD COLUMN disabled_at DATETIME;
ALTER TABLE users ADD COLUMN session_epoch INTEGER NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX users_identity ON users (issuer, subject) WHERE issuer <> '';

-- The one host an enrolled agent's key may check in as; empty for every other
-- key. It never changes, so it needs no trigger.
ALTER TABLE api_keys ADD COLUMN hostname TEXT NOT NULL DEFAULT '';

-- Tokens that an agent turns into its own key, once.
CREATE TABLE enrollments (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  site_id     INTEGER NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
  hostname    TEXT NOT NULL DEFAULT '', -- the only host that may use it; empty for any
  prefix      TEXT NOT NULL CHECK (prefix <> ''),
  hash        BLOB NOT NULL,
  created_at  DATETIME NOT NULL,
  created_by  TEXT NOT NULL DEFAULT '',
  expires_at  DATETIME NOT NULL,
  revoked_at  DATETIME,
  used_at     DATETIME,
  used_by     TEXT NOT NULL DEFAULT '', -- the host that used it
  nonce_hash  BLOB,                     -- by which that host may ask once more
  api_key_id  INTEGER REFERENCES api_keys (id) ON DELETE SET NULL
);
CREATE UNIQUE INDEX enrollments_prefix ON enrollments (prefix);
CREATE INDEX enrollments_site ON enrollments (site_id);
