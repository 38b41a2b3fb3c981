-- +goose Up

-- Whom to tell what. The URL is a secret. What is below enabled_since is what
-- the manager notes of its deliveries.
CREATE TABLE notification_targets (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  name          TEXT NOT NULL CHECK (name <> ''),
  url           TEXT NOT NULL CHECK (url <> ''),
  url_set_at    DATETIME NOT NULL,
  kinds         TEXT NOT NULL DEFAULT '', -- comma-separated; empty for all
  site_ids      TEXT NOT NULL DEFAULT '', -- comma-separated; empty for all
  severity      TEXT NOT NULL DEFAULT 'warning' CHECK (severity IN ('warning', 'error')),
  enabled       BOOLEAN NOT NULL DEFAULT TRUE,
  created_at    DATETIME NOT NULL,
  updated_at    DATETIME NOT NULL,
  enabled_since DATETIME NOT NULL,
  sent_at       DATETIME,
  failures      INTEGER NOT NULL DEFAULT 0, -- in a row
  failed_at     DATETIME,
  last_error    TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX notification_targets_name ON notification_targets (lower(name));

-- Sites of which nobody is told anything until a time.
CREATE TABLE notification_silences (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  site_id    INTEGER NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
  until      DATETIME NOT NULL,
  reason     TEXT NOT NULL DEFAULT '',
  created_by TEXT NOT NULL DEFAULT '',
  created_at DATETIME NOT NULL,
  updated_at DATETIME NOT NULL
);
CREATE UNIQUE INDEX notification_silences_site ON notification_silences (site_id);

-- Something that is wrong with an agent, from the event that began it to the
-- one that ended it.
CREATE TABLE notification_episodes (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  agent_id  INTEGER NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  site_id   INTEGER NOT NULL,
  hostname  TEXT NOT NULL,
  family    TEXT NOT NULL,
  subject   TEXT NOT NULL, -- what of the agent, such as a service
  kind      TEXT NOT NULL, -- of the event
  severity  TEXT NOT NULL,
  summary   TEXT NOT NULL,
  opened_at DATETIME NOT NULL,
  closed_at DATETIME,
  closing   TEXT NOT NULL DEFAULT '' -- how it ended
);
CREATE UNIQUE INDEX notification_episodes_open ON notification_episodes (agent_id, family, subject) WHERE closed_at IS NULL;
CREATE INDEX notification_episodes_closed ON notification_episodes (closed_at);

-- What a target has been told of an episode. Done is when there is no more to
-- tell.
CREATE TABLE notification_deliveries (
  target_id  INTEGER NOT NULL REFERENCES notification_targets (id) ON DELETE CASCADE,
  episode_id INTEGER NOT NULL REFERENCES notification_episodes (id) ON DELETE CASCADE,
  told_at    DATETIME NOT NULL,
  done       BOOLEAN NOT NULL,
  PRIMARY KEY (target_id, episode_id)
);
CREATE INDEX notification_deliveries_episode ON notification_deliveries (episode_id);

-- The last event that was looked at. Those of before are old news.
CREATE TABLE notification_cursor (
  id       INTEGER PRIMARY KEY CHECK (id = 1),
  event_id INTEGER NOT NULL
);
INSERT INTO notification_cursor SELECT 1, coalesce(max(id), 0) FROM events;
