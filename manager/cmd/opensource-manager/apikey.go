package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/store"
)

type apiKeyCommands struct {
	Create apiKeyCreate `cmd:"" help:"Create a key and print it, alone, on stdout. It cannot be shown again."`
	List   apiKeyList   `cmd:"" help:"List keys."`
	Revoke apiKeyRevoke `cmd:"" help:"Revoke a key for good, at once."`
}

// apiKey is a key as it is printed.
type apiKey struct {
	ID         int64      `json:"id"`
	Name       string     `json:"name"`
	Role       string     `json:"role"`
	SiteID     *int64     `json:"siteId"`
	Prefix     string     `json:"prefix"`
	CreatedAt  time.Time  `json:"createdAt"`
	LastUsedAt *time.Time `json:"lastUsedAt"`
	RevokedAt  *time.Time `json:"revokedAt"`
	Key        string     `json:"key,omitempty"` // only of a new one
}

func showAPIKey(k store.APIKey, key string) apiKey {
	return apiKey{
		ID: k.ID, Name: k.Name, Role: k.Role, SiteID: k.SiteID, Prefix: k.Prefix, Key: key,
		CreatedAt: k.CreatedAt.UTC(), LastUsedAt: k.LastUsedAt, RevokedAt: k.RevokedAt,
	}
}

type apiKeyCreate struct {
	Role string `required:"" enum:"admin,viewer,agent" help:"admin, viewer, or agent (check-in for one site)."`
	Site int64  `help:"The one site of an agent key." placeholder:"N"`
	Name string `help:"What the key is for; role and site if not given."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run creates a key.
func (c apiKeyCreate) Run(e *environmentOf) error {
	return e.withStore(func(s *store.Store) error {
		key, row, err := auth.CreateKey(e, s, auth.NewKey{Name: c.name(), Role: auth.Role(c.Role), SiteID: c.Site, CreatedBy: "command line"})
		if err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(showAPIKey(row, key))
		}
		_, err = fmt.Fprintln(e.stdout, key)
		return err
	})
}

func (c apiKeyCreate) name() string {
	switch {
	case c.Name != "":
		return c.Name
	case c.Site != 0:
		return c.Role + " of site " + strconv.FormatInt(c.Site, 10)
	}
	return c.Role
}

type apiKeyList struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run lists all keys.
func (c apiKeyList) Run(e *environmentOf) error {
	return e.withStore(func(s *store.Store) error {
		rows, _, err := s.ListAPIKeys(e, store.APIKeyFilter{}, store.ListOptions{Limit: store.All})
		if err != nil {
			return err
		}
		if c.JSON {
			list := make([]apiKey, 0, len(rows))
			for _, row := range rows {
				list = append(list, showAPIKey(row, ""))
			}
			return e.printJSON(list)
		}
		return c.print(e, rows)
	})
}

func (apiKeyList) print(e *environmentOf, rows []store.APIKey) error {
	t := newTable(e.stdout, "ID", "NAME", "ROLE", "SITE", "PREFIX", "CREATED", "LAST USED", "STATE")
	for _, k := range rows {
		site, state := "", "valid"
		if k.SiteID != nil {
			site = strconv.FormatInt(*k.SiteID, 10)
		}
		if k.RevokedAt != nil {
			state = "revoked " + day(k.RevokedAt)
		}
		t.row(k.ID, k.Name, k.Role, site, k.Prefix, day(&k.CreatedAt), day(k.LastUsedAt), state)
	}
	return t.flush()
}

func day(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return t.UTC().Format(time.DateOnly)
}

type apiKeyRevoke struct {
	ID   int64 `arg:"" help:"The key's id, as apikey list shows it."`
	JSON bool  `name:"json" help:"Print JSON."`
}

// Run revokes a key.
func (c apiKeyRevoke) Run(e *environmentOf) error {
	return e.withStore(func(s *store.Store) error {
		row, err := s.RevokeAPIKey(e, c.ID)
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("there is no API key %d", c.ID)
		}
		if err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(showAPIKey(row, ""))
		}
		_, err = fmt.Fprintf(e.stdout, "revoked API key %d (%s)\n", row.ID, row.Name)
		return err
	})
}
