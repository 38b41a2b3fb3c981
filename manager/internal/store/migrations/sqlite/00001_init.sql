-- Migrate runs all pending files in one transaction of its own, with foreign
-- keys off and a foreign_key_check before the commit.
--
-- Texts that are not set are '' rather than NULL; unique indexes leave them out.

-- +goose Up
CREATE TABLE sites (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  name            TEXT NOT NULL CHECK (name <> ''),
  internal_domain TEXT NOT NULL DEFAULT '',
  dhcp_range      TEXT NOT NULL DEFAULT '',
  subnet_mask     TEXT NOT NULL DEFAULT '',
  gateway         TEXT NOT NULL DEFAULT '',
  dns_forwarders  TEXT NOT NULL DEFAULT '',
  external_ip     TEXT NOT NULL DEFAULT '',
  volumes_root    TEXT NOT NULL,
  port_range      TEXT NOT NULL,
  created_at      DATETIME NOT NULL,
  updated_at      DATETIME NOT NULL
);
CREATE UNIQUE INDEX sites_name ON sites (lower(name));

CREATE TABLE nodes (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  site_id      INTEGER NOT NULL REFERENCES sites (id),
  name         TEXT NOT NULL CHECK (name <> ''),
  ipv4_address TEXT NOT NULL DEFAULT '',
  type         TEXT NOT NULL,
  created_at   DATETIME NOT NULL,
  updated_at   DATETIME NOT NULL,
  UNIQUE (id, site_id)
);
CREATE INDEX nodes_site ON nodes (site_id);

CREATE TABLE containers (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  site_id      INTEGER NOT NULL REFERENCES sites (id),
  node_id      INTEGER NOT NULL,
  hostname     TEXT NOT NULL CHECK (hostname <> ''),
  owner        TEXT NOT NULL DEFAULT '',
  ipv4_address TEXT NOT NULL DEFAULT '',
  mac_address  TEXT NOT NULL DEFAULT '',
  vmid         INTEGER,
  created_at   DATETIME NOT NULL,
  updated_at   DATETIME NOT NULL,
  UNIQUE (id, site_id),
  FOREIGN KEY (node_id, site_id) REFERENCES nodes (id, site_id)
);
CREATE UNIQUE INDEX containers_hostname ON containers (site_id, hostname);
CREATE UNIQUE INDEX containers_ipv4     ON containers (site_id, ipv4_address) WHERE ipv4_address <> '';
CREATE UNIQUE INDEX containers_mac      ON containers (site_id, mac_address) WHERE mac_address <> '';
CREATE UNIQUE INDEX containers_vmid     ON containers (node_id, vmid) WHERE vmid IS NOT NULL;
CREATE INDEX containers_node ON containers (node_id, site_id);

CREATE TABLE external_domains (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  name            TEXT NOT NULL CHECK (name <> ''),
  auth_server     TEXT NOT NULL DEFAULT '',
  default_site_id INTEGER REFERENCES sites (id) ON DELETE SET NULL,
  created_at      DATETIME NOT NULL,
  updated_at      DATETIME NOT NULL
);
CREATE UNIQUE INDEX external_domains_name ON external_domains (name);
CREATE INDEX external_domains_site ON external_domains (default_site_id);

CREATE TABLE services (
  id                 INTEGER PRIMARY KEY AUTOINCREMENT,
  site_id            INTEGER NOT NULL REFERENCES sites (id),
  container_id       INTEGER NOT NULL,
  type               TEXT NOT NULL CHECK (type IN ('http', 'transport', 'dns')),
  internal_port      INTEGER NOT NULL CHECK (internal_port BETWEEN 1 AND 65535),
  external_hostname  TEXT NOT NULL DEFAULT '',
  external_domain_id INTEGER REFERENCES external_domains (id),
  backend_protocol   TEXT NOT NULL DEFAULT '',
  auth_required      BOOLEAN NOT NULL DEFAULT FALSE,
  protocol           TEXT NOT NULL DEFAULT '',
  external_port      INTEGER NOT NULL DEFAULT 0 CHECK (external_port BETWEEN 0 AND 65535),
  record_type        TEXT NOT NULL DEFAULT '',
  dns_name           TEXT NOT NULL DEFAULT '',
  created_at         DATETIME NOT NULL,
  updated_at         DATETIME NOT NULL,
  CHECK (type <> 'http' OR (external_hostname <> '' AND external_domain_id IS NOT NULL)),
  CHECK (type <> 'transport' OR (protocol IN ('tcp', 'udp') AND external_port > 0)),
  CHECK (type <> 'dns' OR dns_name <> ''),
  FOREIGN KEY (container_id, site_id) REFERENCES containers (id, site_id)
);
CREATE UNIQUE INDEX services_http      ON services (external_hostname, external_domain_id) WHERE type = 'http';
CREATE UNIQUE INDEX services_transport ON services (site_id, protocol, external_port) WHERE type = 'transport';
CREATE UNIQUE INDEX services_dns       ON services (container_id, dns_name, internal_port) WHERE type = 'dns';
CREATE INDEX services_container ON services (container_id, site_id);
CREATE INDEX services_site ON services (site_id);
CREATE INDEX services_domain ON services (external_domain_id);

CREATE TABLE volumes (
  id             INTEGER PRIMARY KEY AUTOINCREMENT,
  site_id        INTEGER NOT NULL REFERENCES sites (id),
  container_id   INTEGER NOT NULL,
  name           TEXT NOT NULL CHECK (name <> ''),
  mount_path     TEXT NOT NULL CHECK (mount_path <> ''),
  mode           TEXT NOT NULL CHECK (mode IN ('rw', 'ro')),
  host_path      TEXT NOT NULL CHECK (host_path LIKE '/%'),
  uid            INTEGER NOT NULL CHECK (uid BETWEEN 0 AND 4294967294),
  gid            INTEGER NOT NULL CHECK (gid BETWEEN 0 AND 4294967294),
  status         TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'ready', 'failed')),
  status_message TEXT NOT NULL DEFAULT '',
  reported_at    DATETIME,
  created_at     DATETIME NOT NULL,
  updated_at     DATETIME NOT NULL,
  FOREIGN KEY (container_id, site_id) REFERENCES containers (id, site_id)
);
CREATE UNIQUE INDEX volumes_host_path  ON volumes (site_id, host_path);
CREATE UNIQUE INDEX volumes_name       ON volumes (container_id, name);
CREATE UNIQUE INDEX volumes_mount_path ON volumes (container_id, mount_path);

CREATE TABLE agents (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  site_id       INTEGER NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
  hostname      TEXT NOT NULL CHECK (hostname <> ''),
  peer_address  TEXT NOT NULL DEFAULT '',
  report        TEXT NOT NULL,
  clock_skew_ms INTEGER,
  first_seen_at DATETIME NOT NULL,
  last_seen_at  DATETIME NOT NULL,
  changed_at    DATETIME NOT NULL
);
CREATE UNIQUE INDEX agents_hostname ON agents (site_id, hostname);

CREATE TABLE revisions (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  site_id    INTEGER NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
  number     INTEGER NOT NULL,
  etag       TEXT NOT NULL,
  data       BLOB NOT NULL,
  created_at DATETIME NOT NULL
);
CREATE UNIQUE INDEX revisions_number ON revisions (site_id, number);

CREATE TABLE users (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  name          TEXT NOT NULL CHECK (name <> ''),
  password_hash TEXT NOT NULL,
  role          TEXT NOT NULL CHECK (role IN ('admin', 'viewer')),
  created_at    DATETIME NOT NULL,
  updated_at    DATETIME NOT NULL
);
CREATE UNIQUE INDEX users_name ON users (name);

CREATE TABLE api_keys (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  name         TEXT NOT NULL,
  role         TEXT NOT NULL CHECK (role IN ('admin', 'viewer', 'agent')),
  site_id      INTEGER REFERENCES sites (id) ON DELETE CASCADE,
  prefix       TEXT NOT NULL CHECK (prefix <> ''),
  hash         BLOB NOT NULL,
  created_at   DATETIME NOT NULL,
  created_by   TEXT NOT NULL DEFAULT '',
  last_used_at DATETIME,
  expires_at   DATETIME,
  revoked_at   DATETIME,
  CHECK (role <> 'agent' OR site_id IS NOT NULL)
);
CREATE UNIQUE INDEX api_keys_prefix ON api_keys (prefix);
CREATE INDEX api_keys_site ON api_keys (site_id);

CREATE TABLE sessions (
  token   TEXT PRIMARY KEY,
  data    BLOB NOT NULL,
  expiry  DATETIME NOT NULL,
  user_id INTEGER REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX sessions_expiry ON sessions (expiry);
CREATE INDEX sessions_user ON sessions (user_id);

-- Names and addresses that two kinds of record compete for. Only triggers
-- write these tables, so no way of changing a record gets around them.

CREATE TABLE site_names (
  site_id INTEGER NOT NULL,
  name    TEXT NOT NULL,
  PRIMARY KEY (site_id, name)
) WITHOUT ROWID;

CREATE TABLE site_addresses (
  site_id      INTEGER NOT NULL,
  ipv4_address TEXT NOT NULL,
  PRIMARY KEY (site_id, ipv4_address)
) WITHOUT ROWID;

-- Every full name nginx answers: of HTTP services, and of the domains. The
-- service "a.b" of "example.com" and the service "a" of "b.example.com" are one.
CREATE TABLE public_names (
  name TEXT PRIMARY KEY
) WITHOUT ROWID;

-- +goose StatementBegin
CREATE TRIGGER nodes_claim_insert AFTER INSERT ON nodes BEGIN
  INSERT INTO site_names VALUES (NEW.site_id, NEW.name);
  INSERT INTO site_addresses SELECT NEW.site_id, NEW.ipv4_address WHERE NEW.ipv4_address <> '';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER nodes_claim_update AFTER UPDATE OF site_id, name, ipv4_address ON nodes BEGIN
  DELETE FROM site_names WHERE site_id = OLD.site_id AND name = OLD.name;
  DELETE FROM site_addresses WHERE site_id = OLD.site_id AND ipv4_address = OLD.ipv4_address;
  INSERT INTO site_names VALUES (NEW.site_id, NEW.name);
  INSERT INTO site_addresses SELECT NEW.site_id, NEW.ipv4_address WHERE NEW.ipv4_address <> '';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER nodes_claim_delete AFTER DELETE ON nodes BEGIN
  DELETE FROM site_names WHERE site_id = OLD.site_id AND name = OLD.name;
  DELETE FROM site_addresses WHERE site_id = OLD.site_id AND ipv4_address = OLD.ipv4_address;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER containers_claim_insert AFTER INSERT ON containers BEGIN
  INSERT INTO site_names VALUES (NEW.site_id, NEW.hostname);
  INSERT INTO site_addresses SELECT NEW.site_id, NEW.ipv4_address WHERE NEW.ipv4_address <> '';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER containers_claim_update AFTER UPDATE OF site_id, hostname, ipv4_address ON containers BEGIN
  DELETE FROM site_names WHERE site_id = OLD.site_id AND name = OLD.hostname;
  DELETE FROM site_addresses WHERE site_id = OLD.site_id AND ipv4_address = OLD.ipv4_address;
  INSERT INTO site_names VALUES (NEW.site_id, NEW.hostname);
  INSERT INTO site_addresses SELECT NEW.site_id, NEW.ipv4_address WHERE NEW.ipv4_address <> '';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER containers_claim_delete AFTER DELETE ON containers BEGIN
  DELETE FROM site_names WHERE site_id = OLD.site_id AND name = OLD.hostname;
  DELETE FROM site_addresses WHERE site_id = OLD.site_id AND ipv4_address = OLD.ipv4_address;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER services_claim_insert AFTER INSERT ON services WHEN NEW.type = 'http' BEGIN
  INSERT INTO public_names SELECT NEW.external_hostname || '.' || name FROM external_domains WHERE id = NEW.external_domain_id;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER services_claim_update AFTER UPDATE OF type, external_hostname, external_domain_id ON services BEGIN
  DELETE FROM public_names WHERE OLD.type = 'http'
    AND name = (SELECT OLD.external_hostname || '.' || d.name FROM external_domains d WHERE d.id = OLD.external_domain_id);
  INSERT INTO public_names SELECT NEW.external_hostname || '.' || name FROM external_domains
    WHERE NEW.type = 'http' AND id = NEW.external_domain_id;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER services_claim_delete AFTER DELETE ON services WHEN OLD.type = 'http' BEGIN
  DELETE FROM public_names
    WHERE name = (SELECT OLD.external_hostname || '.' || d.name FROM external_domains d WHERE d.id = OLD.external_domain_id);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER external_domains_claim_insert AFTER INSERT ON external_domains BEGIN
  INSERT INTO public_names VALUES (NEW.name);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER external_domains_claim_update AFTER UPDATE OF name ON external_domains WHEN OLD.name <> NEW.name BEGIN
  DELETE FROM public_names WHERE name = OLD.name;
  DELETE FROM public_names WHERE name IN
    (SELECT external_hostname || '.' || OLD.name FROM services WHERE type = 'http' AND external_domain_id = OLD.id);
  INSERT INTO public_names VALUES (NEW.name);
  INSERT INTO public_names
    SELECT external_hostname || '.' || NEW.name FROM services WHERE type = 'http' AND external_domain_id = NEW.id;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER external_domains_claim_delete AFTER DELETE ON external_domains BEGIN
  DELETE FROM public_names WHERE name = OLD.name;
END;
-- +goose StatementEnd

-- What has changed, for caches of this and every other process. A counter
-- only grows. scope 'site' has one row per site id; 'keys' and 'agents'
-- (deletions) have the id 0, and 'probe', which says nothing but that it could
-- be written. People and sessions are read with every request.
CREATE TABLE change_counters (
  scope   TEXT NOT NULL,
  id      INTEGER NOT NULL DEFAULT 0,
  version INTEGER NOT NULL,
  PRIMARY KEY (scope, id)
) WITHOUT ROWID;

-- A view with an INSTEAD OF trigger is the one place that knows how to count.
CREATE VIEW changed AS SELECT scope, id FROM change_counters;
-- +goose StatementBegin
CREATE TRIGGER changed_count INSTEAD OF INSERT ON changed BEGIN
  INSERT INTO change_counters (scope, id, version) VALUES (NEW.scope, NEW.id, 1)
    ON CONFLICT (scope, id) DO UPDATE SET version = version + 1;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER sites_count_insert AFTER INSERT ON sites BEGIN INSERT INTO changed VALUES ('site', NEW.id); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER sites_count_update AFTER UPDATE ON sites BEGIN INSERT INTO changed VALUES ('site', NEW.id); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER sites_count_delete AFTER DELETE ON sites BEGIN INSERT INTO changed VALUES ('site', OLD.id); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER nodes_count_insert AFTER INSERT ON nodes BEGIN INSERT INTO changed VALUES ('site', NEW.site_id); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER nodes_count_update AFTER UPDATE ON nodes BEGIN
  INSERT INTO changed VALUES ('site', OLD.site_id);
  INSERT INTO changed SELECT 'site', NEW.site_id WHERE NEW.site_id <> OLD.site_id;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER nodes_count_delete AFTER DELETE ON nodes BEGIN INSERT INTO changed VALUES ('site', OLD.site_id); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER containers_count_insert AFTER INSERT ON containers BEGIN INSERT INTO changed VALUES ('site', NEW.site_id); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER containers_count_update AFTER UPDATE ON containers BEGIN
  INSERT INTO changed VALUES ('site', OLD.site_id);
  INSERT INTO changed SELECT 'site', NEW.site_id WHERE NEW.site_id <> OLD.site_id;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER containers_count_delete AFTER DELETE ON containers BEGIN INSERT INTO changed VALUES ('site', OLD.site_id); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER services_count_insert AFTER INSERT ON services BEGIN INSERT INTO changed VALUES ('site', NEW.site_id); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER services_count_update AFTER UPDATE ON services BEGIN
  INSERT INTO changed VALUES ('site', OLD.site_id);
  INSERT INTO changed SELECT 'site', NEW.site_id WHERE NEW.site_id <> OLD.site_id;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER services_count_delete AFTER DELETE ON services BEGIN INSERT INTO changed VALUES ('site', OLD.site_id); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER volumes_count_insert AFTER INSERT ON volumes BEGIN INSERT INTO changed VALUES ('site', NEW.site_id); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER volumes_count_update AFTER UPDATE ON volumes BEGIN
  INSERT INTO changed VALUES ('site', OLD.site_id);
  INSERT INTO changed SELECT 'site', NEW.site_id WHERE NEW.site_id <> OLD.site_id;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER volumes_count_delete AFTER DELETE ON volumes BEGIN INSERT INTO changed VALUES ('site', OLD.site_id); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER external_domains_count_insert AFTER INSERT ON external_domains BEGIN
  INSERT INTO changed SELECT 'site', NEW.default_site_id WHERE NEW.default_site_id IS NOT NULL;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER external_domains_count_update AFTER UPDATE ON external_domains BEGIN
  INSERT INTO changed SELECT DISTINCT 'site', id FROM (
    SELECT OLD.default_site_id AS id UNION SELECT NEW.default_site_id
    UNION SELECT site_id FROM services WHERE external_domain_id = NEW.id) WHERE id IS NOT NULL;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER external_domains_count_delete AFTER DELETE ON external_domains BEGIN
  INSERT INTO changed SELECT 'site', OLD.default_site_id WHERE OLD.default_site_id IS NOT NULL;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER agents_count_delete AFTER DELETE ON agents BEGIN INSERT INTO changed VALUES ('agents', 0); END;
-- +goose StatementEnd

-- Using a key does not change what it may do: last_used_at is not counted.
-- +goose StatementBegin
CREATE TRIGGER api_keys_count_insert AFTER INSERT ON api_keys BEGIN INSERT INTO changed VALUES ('keys', 0); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER api_keys_count_update AFTER UPDATE OF name, role, site_id, prefix, hash, expires_at, revoked_at ON api_keys BEGIN
  INSERT INTO changed VALUES ('keys', 0);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER api_keys_count_delete AFTER DELETE ON api_keys BEGIN INSERT INTO changed VALUES ('keys', 0); END;
-- +goose StatementEnd
