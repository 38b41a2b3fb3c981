package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

// entries are the lines of the audit log in the order they were written, as
// "action resource name".
func entries(t *testing.T, s *store.Store, filter store.AuditFilter) []string {
	t.Helper()
	rows, _, err := s.ListAudit(t.Context(), filter, store.ListOptions{Limit: store.All, Sort: "id"})
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{}
	for _, row := range rows {
		lines = append(lines, fmt.Sprintf("%s %s %s", row.Action, row.Resource, row.Name))
	}
	return lines
}

func wantEntries(t *testing.T, s *store.Store, filter store.AuditFilter, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, entries(t, s, filter)); diff != "" {
		t.Errorf("audit of %+v (-want +got):\n%s", filter, diff)
	}
}

func testAuditOfRecords(t *testing.T, s *store.Store) {
	ada := store.Actor{Kind: store.ActorUser, ID: 7, Name: "ada", Address: "192.0.2.7", RequestID: "r-1"}
	w := NewWorld(t, s, 1)
	ctx := store.WithActor(t.Context(), ada)
	wantEntries(t, s, store.AuditFilter{ActorKind: store.ActorSystem},
		"create site site1", "create node pve1", "create container web", "create external_domain example1.com",
		"create service app", "create service tcp 2000", "create service _sip._tcp", "create volume data")

	must(s.UpdateContainer(ctx, w.Container.ID, func(c *inventory.Container) error {
		c.IPv4Address, c.Owner = "192.0.2.102", ""
		return nil
	}))(t)
	must(s.UpdateContainer(ctx, w.Container.ID, func(*inventory.Container) error { return nil }))(t)
	rows, total, err := s.ListAudit(ctx, store.AuditFilter{Actor: "ada"}, store.ListOptions{})
	if err != nil || total != 1 {
		t.Fatalf("%d entries, %v", total, err)
	}
	want := store.AuditEntry{
		ID: rows[0].ID, At: rows[0].At, Actor: ada, Action: store.ActionUpdate, Resource: "container", ResourceID: w.Container.ID,
		Name: "web", SiteID: w.Site.ID, Times: 1,
		Before: store.Values{"ipv4Address": "192.0.2.101", "owner": "alice"},
		After:  store.Values{"ipv4Address": "192.0.2.102", "owner": ""},
	}
	if diff := cmp.Diff(want, rows[0]); diff != "" {
		t.Error(diff)
	}
	if age := time.Since(rows[0].At); age < 0 || age > time.Minute {
		t.Errorf("written %s ago", age)
	}

	// What is refused leaves no entry.
	no := errors.New("no")
	if _, err := s.UpdateSite(ctx, w.Site.ID, func(*inventory.Site) error { return no }); !errors.Is(err, no) {
		t.Error(err)
	}
	_, err = s.CreateNode(ctx, w.Site.ID, inventory.Node{Name: "web"})
	wantConflict(t, err, "name")
	if err := s.DeleteNode(ctx, w.Node.ID, false); err == nil {
		t.Error("deleted what is in use")
	}
	wantNotFound(t, s.DeleteVolume(ctx, 99))
	if _, total, err := s.ListAudit(ctx, store.AuditFilter{Actor: "ada"}, store.ListOptions{}); err != nil || total != 1 {
		t.Errorf("%d entries, %v", total, err)
	}
}

func testAuditOfCascades(t *testing.T, s *store.Store) {
	w1, w2 := NewWorld(t, s, 1), NewWorld(t, s, 2)
	ctx := t.Context()
	must(s.UpdateExternalDomain(ctx, w2.Domain.ID, func(d *inventory.ExternalDomain) error { d.DefaultSiteID = &w1.Site.ID; return nil }))(t)
	key := store.APIKey{Name: "agent of 1", Role: "agent", SiteID: &w1.Site.ID, Prefix: "p1", Hash: []byte("secret"), CreatedAt: time.Now().UTC()}
	if err := s.CreateAPIKey(ctx, &key); err != nil {
		t.Fatal(err)
	}
	must(s.RecordCheckIn(ctx, store.CheckIn{SiteID: w1.Site.ID, Hostname: "edge", At: time.Now()}))(t)
	acting := store.WithActor(ctx, store.Actor{Kind: store.ActorCommand, Name: "root"})
	if err := s.DeleteSite(acting, w1.Site.ID, true); err != nil {
		t.Fatal(err)
	}
	wantEntries(t, s, store.AuditFilter{Actor: "root"},
		"delete volume data", "delete service app", "delete service tcp 2000", "delete service _sip._tcp",
		"delete container web", "delete node pve1", "delete api_key agent of 1", "delete agent edge",
		"update external_domain example2.com", "delete site site1")
	rows, _, err := s.ListAudit(ctx, store.AuditFilter{Actor: "root", Resource: "site"}, store.ListOptions{})
	if err != nil || len(rows) != 1 || rows[0].Before["gateway"] != "192.0.2.1" || rows[0].Before["externalIp"] != nil || rows[0].After != nil {
		t.Errorf("%+v, %v", rows, err)
	}
}

func testAuditOfPeople(t *testing.T, s *store.Store) {
	ctx := t.Context()
	const secret = "argon2id-of-a-secret"
	user := store.User{Name: "ada", Role: "admin", PasswordHash: secret}
	if err := s.CreateUser(ctx, &user); err != nil {
		t.Fatal(err)
	}
	eve := store.User{Name: "eve", Role: "viewer", PasswordHash: secret}
	if err := s.CreateUser(ctx, &eve); err != nil {
		t.Fatal(err)
	}
	must(s.UpdateUser(ctx, user.ID, func(u *store.User) error { u.PasswordHash = secret + "2"; return nil }))(t)
	if err := s.DeleteUser(ctx, eve.ID); err != nil {
		t.Fatal(err)
	}
	key := store.APIKey{Name: "deploy", Role: "admin", Prefix: "p1", Hash: []byte(secret), CreatedAt: time.Now().UTC()}
	if err := s.CreateAPIKey(ctx, &key); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		must(s.RevokeAPIKey(ctx, key.ID))(t)
	}
	if err := s.TouchAPIKeys(ctx, map[int64]time.Time{key.ID: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if err := s.Audit(ctx, store.ActionSignIn, store.Subject{Resource: "session", ID: user.ID, Name: "ada"}, nil); err != nil {
		t.Fatal(err)
	}
	wantEntries(t, s, store.AuditFilter{},
		"create user ada", "create user eve", "password_changed user ada", "delete user eve",
		"key_created api_key deploy", "key_revoked api_key deploy", "sign_in session ada")
	rows, _, err := s.ListAudit(ctx, store.AuditFilter{}, store.ListOptions{Limit: store.All})
	if err != nil {
		t.Fatal(err)
	}
	all, _ := json.Marshal(rows)
	for _, word := range []string{secret, "c2VjcmV0", "assword\"", "ash\""} {
		if strings.Contains(string(all), word) {
			t.Errorf("%q is in the audit log: %s", word, all)
		}
	}
}

// What agents say is no act of a person.
func testAuditNotOfAgents(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	_, before, err := s.ListAudit(ctx, store.AuditFilter{}, store.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 102 { // more than are remembered
		must(s.RecordCheckIn(ctx, store.CheckIn{
			SiteID: w.Site.ID, Hostname: fmt.Sprintf("edge%d", i), At: time.Now(),
			Volumes: map[int64]checkin.VolumeReport{w.Volume.ID: {Applied: i%2 == 0}},
		}))(t)
	}
	must(s.Publish(ctx, w.Site.ID, func(store.Inventory) ([]byte, string, error) { return []byte("{}"), `"a"`, nil }))(t)
	if _, after, err := s.ListAudit(ctx, store.AuditFilter{}, store.ListOptions{}); err != nil || after != before {
		t.Errorf("%d entries, then %d, %v", before, after, err)
	}
}

func testAuditFilters(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	NewWorld(t, s, 2)
	ctx := t.Context()
	for name, test := range map[string]struct {
		filter store.AuditFilter
		search string
		want   int64
	}{
		"site":             {store.AuditFilter{SiteID: w.Site.ID}, "", 7},
		"resource":         {store.AuditFilter{Resource: "service"}, "", 6},
		"one record":       {store.AuditFilter{Resource: "node", ResourceID: w.Node.ID}, "", 1},
		"action":           {store.AuditFilter{Action: store.ActionDelete}, "", 0},
		"since":            {store.AuditFilter{Since: time.Now().Add(-time.Minute)}, "", 16},
		"since the future": {store.AuditFilter{Since: time.Now().Add(time.Minute)}, "", 0},
		"until":            {store.AuditFilter{Until: time.Now().Add(time.Minute)}, "", 16},
		"text of a name":   {store.AuditFilter{}, "EXAMPLE1", 1},
		"text of a value":  {store.AuditFilter{}, "02:00:00:00:00:01", 2},
		"no pattern":       {store.AuditFilter{}, "%", 0},
	} {
		rows, total, err := s.ListAudit(ctx, test.filter, store.ListOptions{Limit: 3, Search: test.search})
		if err != nil || total != test.want || len(rows) != int(min(3, test.want)) {
			t.Errorf("%s: %d of %d, want %d, %v", name, len(rows), total, test.want, err)
		}
	}
	rows, _, err := s.ListAudit(ctx, store.AuditFilter{}, store.ListOptions{Limit: 2})
	if err != nil || rows[0].ID < rows[1].ID {
		t.Errorf("not the newest first: %+v, %v", rows, err)
	}
}

func testFailedSignIns(t *testing.T, s *store.Store) {
	ctx := t.Context()
	from := func(address string) store.Actor { return store.Actor{Kind: store.ActorUnknown, Address: address} }
	ada := store.Subject{Resource: "session", ID: 1, Name: "ada"}
	fail := func(address string, account store.Subject) {
		t.Helper()
		if err := s.AuditFailedSignIn(store.WithActor(ctx, from(address)), account); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		fail("192.0.2.7", ada)
	}
	fail("192.0.2.7", store.Subject{Resource: "session"})
	rows, total, err := s.ListAudit(ctx, store.AuditFilter{Action: store.ActionSignInFailed}, store.ListOptions{Sort: "id"})
	// A minute may have ended in between.
	if err != nil || total > 4 || rows[0].Actor != from("192.0.2.7") || rows[0].Name != "ada" || rows[len(rows)-1].Name != "" {
		t.Fatalf("%+v, %v", rows, err)
	}
	if times := timesOf(rows); times != 6 {
		t.Errorf("%d times", times)
	}
	for i := range 300 {
		fail(fmt.Sprintf("2001:db8::%x", i), ada)
	}
	rows, total, err = s.ListAudit(ctx, store.AuditFilter{Action: store.ActionSignInFailed}, store.ListOptions{Limit: store.All})
	if err != nil || total > 130 || timesOf(rows) != 306 {
		t.Errorf("%d entries tell of %d, %v", total, timesOf(rows), err)
	}
}

func timesOf(rows []store.AuditEntry) (times int64) {
	for _, row := range rows {
		times += row.Times
	}
	return times
}

func testRecall(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	refs := []store.Ref{
		{Resource: "site", ID: w.Site.ID},
		{Resource: "container", ID: w.Container.ID},
		{Resource: "volume", ID: w.Volume.ID},
		{Resource: "external_domain", ID: w.Domain.ID},
		{Resource: "container", ID: w.Container.ID},
		{Resource: "site", ID: 99},
		{Resource: "volume", ID: 0},
		{Resource: "database", ID: 1},
		{Resource: "", ID: 1},
	}
	want := map[store.Ref]store.Recalled{
		refs[0]: {Name: "site1"}, refs[1]: {Name: "web"}, refs[2]: {Name: "data", ContainerID: w.Container.ID}, refs[3]: {Name: "example1.com"},
	}
	if diff := cmp.Diff(want, must(s.Recall(ctx, refs))(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	must(s.UpdateContainer(ctx, w.Container.ID, func(c *inventory.Container) error { c.Hostname = "shop"; return nil }))(t)
	want[refs[1]] = store.Recalled{Name: "shop"}
	if diff := cmp.Diff(want, must(s.Recall(ctx, refs))(t)); diff != "" {
		t.Errorf("renamed (-want +got):\n%s", diff)
	}
	if err := s.DeleteSite(ctx, w.Site.ID, true); err != nil {
		t.Fatal(err)
	}
	want[refs[0]] = store.Recalled{Name: "site1", Gone: true}
	want[refs[1]] = store.Recalled{Name: "shop", Gone: true}
	want[refs[2]] = store.Recalled{Name: "data", Gone: true, ContainerID: w.Container.ID}
	if diff := cmp.Diff(want, must(s.Recall(ctx, refs))(t)); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
}
