package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/prose"
	"opensource.internal/manager/internal/store"
)

var keysCrumb = crumb{"API keys", "/api-keys"}

func keyPath(id int64) string { return fmt.Sprintf("/api-keys/%d", id) }

// keysEvery is how often pages about keys are fetched: of their use no event tells.
const keysEvery = 30 * time.Second

// keyRoles are what the keys of each role may do.
var keyRoles = []option{
	{string(auth.RoleViewer), "Viewer: reads everything but secrets"},
	{string(auth.RoleAdmin), "Administrator: reads and changes everything"},
	{string(auth.RoleAgent), "Agent: checks in for one site, and nothing else"},
}

// roleNames are the roles in one word.
var roleNames = map[string]string{string(auth.RoleViewer): "viewer", string(auth.RoleAdmin): "admin", string(auth.RoleAgent): "agent"}

// wantedKey is a key as people describe it.
type wantedKey struct {
	Name, Role string
	SiteID     *int64
	ExpiresAt  *time.Time
}

func keyFields(sites []option) func(*wantedKey) []*field {
	return func(k *wantedKey) []*field {
		return append(keptKeyFields(k)[:1],
			choice("role", "Role", &k.Role, keyRoles...),
			record("siteId", "Site", &k.SiteID, sites...).hint("Of an agent’s key only: the one site that it checks in for"),
			keptKeyFields(k)[1],
		)
	}
}

// keptKeyFields are what may be changed about a key that there is.
func keptKeyFields(k *wantedKey) []*field {
	return []*field{
		text("name", "Name", &k.Name).required().hint("What uses it, such as backup of pve1"),
		ending("expiresAt", "Expires", &k.ExpiresAt).hint("A time such as 2027-01-31, or a time span such as 90d. If empty: never"),
	}
}

func (d *dashboard) listKeys(v *visit) error {
	l := v.listing("API keys", column{"Name", "name"}, column{"Role", "role"}, column{"Site", "siteId"}, column{"State", "expiresAt"},
		column{"Last used", "lastUsedAt"}, column{"Created", "createdAt"})
	role := (&field{Name: "role", Label: "Role", Kind: choiceInput, Options: anyOf("All", option{"viewer", "Viewers"}, option{"admin", "Administrators"}, option{"agent", "Agents"})}).of(v)
	state := (&field{Name: "state", Label: "State", Kind: choiceInput, Options: keyStates}).of(v)
	l.Filters = []*field{role, state}
	keys, total, err := d.keysInState(v, l, role, state)
	if err != nil {
		return err
	}
	sites, err := d.siteNames(v)
	if err != nil {
		return err
	}
	l.Total, l.Empty = total, "There is no API key yet. Programs and agents use keys; people sign in by name and password."
	if v.canWrite() {
		l.New = crumb{"New API key", "/api-keys/new"}
	}
	for _, k := range keys {
		created := v.when(&k.CreatedAt)
		created.Note = by(k.CreatedBy)
		l.Rows = append(l.Rows, row{fmt.Sprintf("key-%d", k.ID), []cell{
			{Text: k.Name, Link: keyPath(k.ID), Note: shortKey(k)},
			{Text: roleNames[k.Role], Note: k.Hostname},
			keySite(k, sites), v.keyState(k), v.lastUse(k), created,
		}})
	}
	p := v.page("API keys", "/api-keys")
	p.Topics, p.Every = []string{"sites"}, keysEvery
	return v.show(http.StatusOK, p, listPage(p, l))
}

// allKeys is the choice of keys in whatever state.
const allKeys = "all"

// keyStates are the choices of keys by state: those that work, unless one asks
// for others.
var keyStates = []option{{"", "Keys that work"}, {string(store.KeyEnded), "Revoked and expired"}, {allKeys, "All"}}

// keysInState lists the keys that are asked for, and leads to those that are not.
func (d *dashboard) keysInState(v *visit, l *listing, role, state *field) ([]store.APIKey, int64, error) {
	list := func(in store.KeyState, opts store.ListOptions) ([]store.APIKey, int64, error) {
		return d.store.ListAPIKeys(v.Request.Context(), store.APIKeyFilter{Role: role.Value, State: in}, opts)
	}
	switch state.Value {
	case allKeys:
		return list("", l.options())
	case string(store.KeyEnded):
		return list(store.KeyEnded, l.options())
	}
	keys, total, err := list(store.KeyWorks, l.options())
	if err != nil {
		return nil, 0, err
	}
	_, ended, err := list(store.KeyEnded, store.ListOptions{Limit: 1, Search: l.Search})
	switch {
	case err != nil || ended == 0:
		return keys, total, err
	case total == 0:
		state.Value = string(store.KeyEnded)
		return list(store.KeyEnded, l.options())
	}
	l.Also = crumb{"Show " + prose.Counted(int(ended), "revoked or expired key"), string(l.with(state, string(store.KeyEnded)))}
	return keys, total, nil
}

// shortKey is how a key is recognised by who has it.
func shortKey(k store.APIKey) string { return "osk_" + k.Prefix + "_…" }

func by(name string) string {
	if name == "" {
		return ""
	}
	return "by " + name
}

func keySite(k store.APIKey, sites map[int64]string) cell {
	if k.SiteID == nil {
		return cell{}
	}
	return cell{Text: sites[*k.SiteID], Link: sitePath(*k.SiteID)}
}

// soon is how long before its end a key is worth a warning.
const soon = 14 * 24 * time.Hour

func keyWorks(k store.APIKey, now time.Time) bool {
	return k.RevokedAt == nil && (k.ExpiresAt == nil || now.Before(*k.ExpiresAt))
}

// keyState says whether a key works, and how long.
func (v *visit) keyState(k store.APIKey) cell {
	switch {
	case k.RevokedAt != nil:
		return cell{Text: "revoked", Class: "neutral", Note: ago(max(0, v.Now.Sub(*k.RevokedAt)))}
	case k.ExpiresAt == nil:
		return cell{Text: "works", Class: good}
	case !keyWorks(k, v.Now):
		return cell{Text: "expired", Class: "neutral", Note: ago(v.Now.Sub(*k.ExpiresAt))}
	}
	c := cell{Text: "works", Class: good, Note: "expires in " + span(k.ExpiresAt.Sub(v.Now))}
	if k.ExpiresAt.Sub(v.Now) < soon {
		c.Text, c.Class = "expires soon", warn
	}
	return c
}

func (v *visit) lastUse(k store.APIKey) cell {
	if k.LastUsedAt == nil {
		return cell{Text: "never"}
	}
	return v.when(k.LastUsedAt)
}

// siteNames are the names of all sites.
func (d *dashboard) siteNames(v *visit) (map[int64]string, error) {
	sites, _, err := d.store.ListSites(v.Request.Context(), store.SiteFilter{}, store.ListOptions{Limit: store.All})
	names := map[int64]string{}
	for _, s := range sites {
		names[s.ID] = s.Name
	}
	return names, err
}

// keyView is all about one key, but the key.
type keyView struct {
	Path     string
	Details  []detail
	Works    bool
	CanWrite bool
}

func (d *dashboard) key(v *visit) error {
	k, err := d.keyOf(v)
	if err != nil {
		return err
	}
	sites, err := d.siteNames(v)
	if err != nil {
		return err
	}
	expires := v.when(k.ExpiresAt)
	if k.ExpiresAt == nil {
		expires.Text = "never"
	}
	created := v.when(&k.CreatedAt)
	created.Note = by(k.CreatedBy)
	view := keyView{Path: keyPath(k.ID), Works: keyWorks(k, v.Now), CanWrite: v.canWrite(), Details: []detail{
		{Name: "State", cell: v.keyState(k)},
		{Name: "Role", cell: cell{Text: choice("", "", &k.Role, keyRoles...).words()}},
		{Name: "Begins with", cell: cell{Text: shortKey(k)}},
		{Name: "Last used", cell: v.lastUse(k)},
		{Name: "Expires", cell: expires},
		{Name: "Created", cell: created},
	}}
	if k.SiteID != nil {
		view.Details = append(view.Details, detail{Name: "Site", cell: keySite(k, sites)})
	}
	if k.Hostname != "" {
		view.Details = append(view.Details, detail{Name: "Host", cell: cell{Text: k.Hostname, Note: "The only one that may use it"}})
	}
	p := v.page(k.Name, "/api-keys", keysCrumb)
	p.Topics, p.Every = []string{"sites"}, keysEvery
	return v.show(http.StatusOK, p, keyPage(p, view))
}

// newKey shows the key that it has made, at the address of the form: no other
// page ever shows it.
func (d *dashboard) newKey(v *visit) error {
	options, err := d.siteOptions(v)
	if err != nil {
		return err
	}
	options[0].Label = "None"
	wanted := wantedKey{Role: string(auth.RoleViewer)}
	if site, err := strconv.ParseInt(v.Query("site"), 10, 64); err == nil {
		wanted.Role, wanted.SiteID = string(auth.RoleAgent), &site
	}
	f := &form{Fields: keyFields(options)(&wanted), Submit: "Create the key", Cancel: "/api-keys"}
	return v.fillOnce(v.page("New API key", "/api-keys", keysCrumb), f, func(typed url.Values) (shown, error) {
		if err := f.read(typed); err != nil {
			return shown{}, err
		}
		asked := auth.NewKey{Name: wanted.Name, Role: auth.Role(wanted.Role), ExpiresAt: wanted.ExpiresAt, CreatedBy: v.Who.Name}
		if wanted.SiteID != nil {
			asked.SiteID = *wanted.SiteID
		}
		key, row, err := auth.CreateKey(v.Request.Context(), d.store, asked)
		return shownKey(key, row, "The key was created."), err
	})
}

// shownKey is a new key, and what to do with it.
func shownKey(key string, row store.APIKey, done string) shown {
	s := shown{Title: row.Name, Done: done, Name: "The key", Secret: key, Path: keyPath(row.ID), Back: keysCrumb}
	if row.Role == string(auth.RoleAgent) {
		s.Use, s.Line = "The agent reads it from /etc/opensource-agent/agent.env on its host, in this line:", "API_KEY="+key
	} else {
		s.Use, s.Line = "Programs send it with each request, in this header:", "Authorization: Bearer "+key
	}
	return s
}

func (d *dashboard) editKey(v *visit) error {
	k, err := d.keyOf(v)
	if err != nil {
		return err
	}
	edited := wantedKey{Name: k.Name, ExpiresAt: k.ExpiresAt}
	f := &form{Fields: keptKeyFields(&edited), Version: version(edited), Submit: "Save", Cancel: keyPath(k.ID)}
	before := keptKeyFields(&edited)
	return v.fill(v.page("Edit the API key", "/api-keys", keysCrumb, crumb{k.Name, keyPath(k.ID)}), f, func(typed url.Values) (done, error) {
		row, err := auth.ChangeKey(v.Request.Context(), d.store, k.ID, func(now store.APIKey) (change auth.KeyChange, err error) {
			wanted := wantedKey{Name: now.Name, ExpiresAt: now.ExpiresAt}
			err = changing(f, typed, keptKeyFields)(&wanted)
			change.Name = &wanted.Name
			if wanted.ExpiresAt != now.ExpiresAt {
				change.ExpiresAt = &wanted.ExpiresAt
			}
			return change, err
		})
		edited = wantedKey{Name: row.Name, ExpiresAt: row.ExpiresAt}
		return saved(keyPath(k.ID), "API key", 0, before, keptKeyFields(&edited)), err
	})
}

func (d *dashboard) rotateKey(v *visit) error {
	k, err := d.keyOf(v)
	if err != nil {
		return err
	}
	overlap := "24h"
	f := &form{Submit: "Make the new key", Cancel: keyPath(k.ID), Fields: []*field{
		text("overlap", "The old key works for another", &overlap).required().hint("A time span such as 90m, 24h or 7d, up to 30d; 0s ends it at once"),
	}}
	p := v.page(fmt.Sprintf("Replace the key %q by a new one", k.Name), "/api-keys", keysCrumb, crumb{k.Name, keyPath(k.ID)})
	return v.fillOnce(p, f, func(typed url.Values) (shown, error) {
		if err := f.read(typed); err != nil {
			return shown{}, err
		}
		span, err := inventory.ParseDuration(overlap)
		if err != nil {
			return shown{}, &auth.FieldError{Field: "overlap", Err: err}
		}
		key, row, err := auth.RotateKey(v.Request.Context(), d.store, k.ID, span, v.Who.Name)
		if err != nil {
			return shown{}, err
		}
		old, err := d.store.GetAPIKey(v.Request.Context(), k.ID)
		if err != nil {
			return shown{}, err
		}
		s := shownKey(key, row, "There is a new key.")
		s.Note = fmt.Sprintf("The old one, %s, works until %s.", shortKey(old), old.ExpiresAt.UTC().Format(humanTime))
		return s, nil
	})
}

func (d *dashboard) revokeKey(v *visit) error {
	k, err := d.keyOf(v)
	if err != nil {
		return err
	}
	used := "It was never used."
	if k.LastUsedAt != nil {
		used = fmt.Sprintf("It was last used %s.", ago(max(0, v.Now.Sub(*k.LastUsedAt))))
	}
	q := question{
		Text: "Whoever uses this key is refused from now on, for good.", Note: used + " To replace it without a break, rotate it instead.",
		Button: "Revoke the key", Cancel: keyPath(k.ID),
	}
	return v.ask(v.page(fmt.Sprintf("Revoke the API key %q?", k.Name), "/api-keys", keysCrumb, crumb{k.Name, keyPath(k.ID)}), q, func() (done, error) {
		_, err := d.store.RevokeAPIKey(v.Request.Context(), k.ID)
		return done{Path: keyPath(k.ID), Text: "The API key was revoked."}, err
	})
}

// keyOf is the key of the address.
func (d *dashboard) keyOf(v *visit) (store.APIKey, error) {
	id, err := v.id()
	if err != nil {
		return store.APIKey{}, err
	}
	return d.store.GetAPIKey(v.Request.Context(), id)
}
