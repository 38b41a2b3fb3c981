package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/mattn/go-sqlite3"

	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

// TestDatabaseItselfRefuses writes past the store: what has to be unique is so
// for whoever comes to the database.
func TestDatabaseItselfRefuses(t *testing.T) {
	database := storetest.Database(t)
	s := storetest.OpenAt(t, database)
	w := storetest.NewWorld(t, s, 1)
	storetest.NewWorld(t, s, 2)
	if _, err := s.RecordCheckIn(t.Context(), store.CheckIn{SiteID: w.Site.ID, Hostname: "agent", At: time.Now().UTC()}); err != nil {
		t.Fatal(err)
	}
	db := storetest.Raw(t, database)
	if !storetest.OnPostgreSQL() {
		db.SetMaxOpenConns(1) // the pragma is the connection's
		if _, err := db.Exec("PRAGMA foreign_keys = on"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec("UPDATE containers SET vmid = 100 WHERE id = 1"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, statement, want string }{
		{"site name", `INSERT INTO sites (name, volumes_root, port_range, created_at, updated_at) VALUES ('SITE1', '/v', '1-2', '2026-01-02', '2026-01-02')`, "unique"},
		{"node name", `INSERT INTO nodes (site_id, name, type, created_at, updated_at) VALUES (1, 'pve1', 'none', '2026-01-02', '2026-01-02')`, "unique"},
		{"container's name for a node", `INSERT INTO nodes (site_id, name, type, created_at, updated_at) VALUES (1, 'web', 'none', '2026-01-02', '2026-01-02')`, "unique"},
		{"node's name for a container", `UPDATE containers SET hostname = 'pve1' WHERE id = 1`, "unique"},
		{"host name", `INSERT INTO containers (site_id, node_id, hostname, created_at, updated_at) VALUES (1, 1, 'web', '2026-01-02', '2026-01-02')`, "unique"},
		{"address", `INSERT INTO containers (site_id, node_id, hostname, ipv4_address, created_at, updated_at) VALUES (1, 1, 'x', '192.0.2.101', '2026-01-02', '2026-01-02')`, "unique"},
		{"node's address", `UPDATE containers SET ipv4_address = '192.0.2.10' WHERE id = 1`, "unique"},
		{"hardware address", `INSERT INTO containers (site_id, node_id, hostname, mac_address, created_at, updated_at) VALUES (1, 1, 'x', '02:00:00:00:00:01', '2026-01-02', '2026-01-02')`, "unique"},
		{"number on the node", `INSERT INTO containers (site_id, node_id, hostname, vmid, created_at, updated_at) VALUES (1, 1, 'x', 100, '2026-01-02', '2026-01-02')`, "unique"},
		{"node of another site", `INSERT INTO containers (site_id, node_id, hostname, created_at, updated_at) VALUES (1, 2, 'x', '2026-01-02', '2026-01-02')`, "foreign"},
		{"host of a domain", `INSERT INTO services (site_id, container_id, type, internal_port, external_hostname, external_domain_id, created_at, updated_at) VALUES (1, 1, 'http', 1, 'app', 1, '2026-01-02', '2026-01-02')`, "unique"},
		{"full name", `INSERT INTO external_domains (name, created_at, updated_at) VALUES ('app.example1.com', '2026-01-02', '2026-01-02')`, "unique"},
		{"domain", `UPDATE external_domains SET name = 'example2.com' WHERE id = 1`, "unique"},
		{"port", `INSERT INTO services (site_id, container_id, type, internal_port, protocol, external_port, created_at, updated_at) VALUES (1, 1, 'transport', 1, 'tcp', 2000, '2026-01-02', '2026-01-02')`, "unique"},
		{"port 65536", `UPDATE services SET external_port = 65536 WHERE type = 'transport'`, "check"},
		{"host path", `INSERT INTO volumes (site_id, container_id, name, mount_path, mode, host_path, uid, gid, created_at, updated_at) VALUES (1, 1, 'x', '/x', 'rw', '/mnt/volumes/site-1/alice/web/data', 0, 0, '2026-01-02', '2026-01-02')`, "unique"},
		{"mode", `UPDATE volumes SET mode = '0755'`, "check"},
		{"agent", `INSERT INTO agents (site_id, hostname, report, first_seen_at, last_seen_at, changed_at) VALUES (1, 'agent', '{}', '2026-01-02', '2026-01-02', '2026-01-02')`, "unique"},
		{"site in use", `DELETE FROM sites WHERE id = 1`, "foreign"},
		{"node in use", `DELETE FROM nodes WHERE id = 1`, "foreign"},
		{"container in use", `DELETE FROM containers WHERE id = 1`, "foreign"},
		{"domain in use", `DELETE FROM external_domains WHERE id = 1`, "foreign"},
	} {
		_, err := db.Exec(test.statement)
		if got := constraint(err); got != test.want {
			t.Errorf("%s: %q, %v", test.name, got, err)
		}
	}
}

// constraint is the kind of constraint that refused a statement, by the
// database's code.
func constraint(err error) string {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return map[string]string{"23505": "unique", "23503": "foreign", "23514": "check"}[refused.Code]
	}
	refused, _ := errors.AsType[sqlite3.Error](err)
	return map[sqlite3.ErrNoExtended]string{
		sqlite3.ErrConstraintUnique: "unique", sqlite3.ErrConstraintPrimaryKey: "unique",
		sqlite3.ErrConstraintForeignKey: "foreign", sqlite3.ErrConstraintCheck: "check",
	}[refused.ExtendedCode]
}
