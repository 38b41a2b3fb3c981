package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

type apiKeyCommands struct {
	Create apiKeyCreate `cmd:"" help:"Create a key and print it, alone, on stdout. It cannot be shown again."`
	List   apiKeyList   `cmd:"" help:"List keys."`
	Rotate apiKeyRotate `cmd:"" help:"Replace a key by a new one, printed alone on stdout; the old one works on for a while."`
	Revoke apiKeyRevoke `cmd:"" help:"Revoke a key for good, at once."`
}

type apiKeyCreate struct {
	Role string `required:"" enum:"admin,viewer,agent" help:"admin, viewer, or agent (check-in for one site)."`
	Site string `help:"The one site of an agent key." placeholder:"SITE"`
	Name string `help:"What the key is for; role and site if not given."`

	Expires string `help:"When the key stops to work, such as 90d; never if not given." placeholder:"TIME"`
	JSON    bool   `name:"json" help:"Print JSON."`
}

// Run creates a key.
func (c apiKeyCreate) Run(e *environmentOf) error {
	wanted := auth.NewKey{Role: auth.Role(c.Role), CreatedBy: "command line"}
	if c.Expires != "" {
		span, err := spanOf("--expires", c.Expires)
		if err != nil {
			return err
		}
		end := time.Now().Add(span)
		wanted.ExpiresAt = &end
	}
	return e.withNewStore(func(s *store.Store) error {
		var err error
		if wanted.SiteID, err = siteIDOf(e, s, c.Site); err != nil {
			return err
		}
		wanted.Name = c.name(wanted.SiteID)
		key, row, err := auth.CreateKey(e, s, wanted)
		if err != nil {
			return err
		}
		return e.printKey(key, row, c.JSON)
	})
}

// printKey prints a new key, alone unless it is JSON.
func (e *environmentOf) printKey(key string, row store.APIKey, asJSON bool) error {
	if asJSON {
		return e.printJSON(show.NewAPIKey{APIKey: show.APIKeyOf(row), Key: key})
	}
	_, err := fmt.Fprintln(e.stdout, key)
	return err
}

// spanOf reads a time span that was given as an option.
func spanOf(option, value string) (time.Duration, error) {
	span, err := inventory.ParseDuration(value)
	if err != nil {
		return 0, usageError{fmt.Errorf("%s: %w", option, err)}
	}
	return span, nil
}

type apiKeyRotate struct {
	ID      int64  `arg:"" help:"The key's id, as apikey list shows it."`
	Overlap string `default:"24h" help:"How long the old key works on, up to 30d (default 24h)." placeholder:"TIME"`
	JSON    bool   `name:"json" help:"Print JSON."`
}

// Run makes a key that takes the place of another one.
func (c apiKeyRotate) Run(e *environmentOf) error {
	overlap, err := spanOf("--overlap", c.Overlap)
	if err != nil {
		return err
	}
	return e.withStore(func(s *store.Store) error {
		key, row, err := auth.RotateKey(e, s, c.ID, overlap, "command line")
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("there is no API key %d", c.ID)
		}
		if err != nil {
			return err
		}
		return e.printKey(key, row, c.JSON)
	})
}

func (c apiKeyCreate) name(siteID int64) string {
	switch {
	case c.Name != "":
		return c.Name
	case siteID != 0:
		return c.Role + " of site " + strconv.FormatInt(siteID, 10)
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
			return e.printJSON(shownAs(rows, show.APIKeyOf))
		}
		return c.print(e, rows)
	})
}

func (apiKeyList) print(e *environmentOf, rows []store.APIKey) error {
	t := newTable(e.stdout, "ID", "NAME", "ROLE", "SITE", "HOST", "PREFIX", "CREATED", "LAST USED", "STATE")
	for _, k := range rows {
		site, state := "", keyState(k, time.Now())
		if k.SiteID != nil {
			site = strconv.FormatInt(*k.SiteID, 10)
		}
		t.row(k.ID, k.Name, k.Role, site, k.Hostname, k.Prefix, day(&k.CreatedAt), day(k.LastUsedAt), state)
	}
	return t.flush()
}

// keyState says whether a key works, and until when.
func keyState(k store.APIKey, now time.Time) string {
	switch {
	case k.RevokedAt != nil:
		return "revoked " + day(k.RevokedAt)
	case k.ExpiresAt == nil:
		return "valid"
	case !now.Before(*k.ExpiresAt):
		return "expired " + day(k.ExpiresAt)
	}
	return "valid until " + k.ExpiresAt.UTC().Format(time.RFC3339)
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
			return e.printJSON(show.APIKeyOf(row))
		}
		_, err = fmt.Fprintf(e.stdout, "revoked API key %d (%s)\n", row.ID, row.Name)
		return err
	})
}
