package dashboard

import (
	"strings"
	"testing"

	"opensource.internal/manager/internal/store"
)

// TestTheAuditLogHasWordsForEverything: no name of the API is left to people.
func TestTheAuditLogHasWordsForEverything(t *testing.T) {
	for _, action := range store.Actions() {
		if deeds[action].Did == "" || deeds[action].Choice == "" {
			t.Errorf("no words for the action %s", action)
		}
	}
	for _, resource := range store.Resources() {
		if resourceNames[resource] == "" {
			t.Errorf("no word for a %s", resource)
		}
	}
	for _, values := range []struct{ resource, name, want string }{
		{"site", "externalIp", "External address"},
		{"container", "ipv4Address", "IPv4 address"},
		{"service", "type", "Kind"},
		{"user", "disabledAt", "Disabled"},
		{"site", "someNewField", "some new field"},
	} {
		if got := labelIn(values.resource, values.name); got != values.want {
			t.Errorf("%s of a %s is %q", values.name, values.resource, got)
		}
	}
}

// TestValuesOfTheAuditLog are those of JSON.
func TestValuesOfTheAuditLog(t *testing.T) {
	long := strings.Repeat("ä", longValue+1)
	for _, c := range []struct {
		resource, name string
		value          any
		want           string
	}{
		{"site", "gateway", nil, "not set"},
		{"site", "gateway", "", "not set"},
		{"service", "authRequired", true, "yes"},
		{"service", "authRequired", false, "no"},
		{"volume", "mode", "ro", "Only read"},
		{"volume", "mode", "strange", "strange"},
		{"volume", "uid", float64(100000), "100000"},
		{"api_key", "expiresAt", "2027-01-31T06:00:00.25Z", "2027-01-31 06:00:00 UTC"},
		{"notification_target", "kinds", []any{}, "all"},
		{"notification_target", "siteIds", nil, "all"},
		{"notification_target", "kinds", []any{"x", "y"}, "x, y"},
		{"user", "unknown", map[string]any{"a": 1}, `{"a":1}`},
		{"site", "name", long, strings.Repeat("ä", longValue) + "…"},
	} {
		if got := valueIn(c.resource, c.name, c.value); got != c.want {
			t.Errorf("%s %s %v: %q, want %q", c.resource, c.name, c.value, got, c.want)
		}
	}
}

// TestWhatTheLogNoLongerKnows: an entry outlives its records, and a kind of
// entry this program.
func TestWhatTheLogNoLongerKnows(t *testing.T) {
	var n narrator
	for want, e := range map[string]store.AuditEntry{
		"uid 0 on the command line restored the database":                    {Actor: store.Actor{Kind: store.ActorCommand, Name: "uid 0"}, Action: store.ActionRestore, Resource: "database"},
		"The manager deleted the service “app” of the container 7 (deleted)": {Actor: store.Actor{Kind: store.ActorSystem}, Action: store.ActionDelete, Resource: "service", ResourceID: 3, Name: "app", Before: store.Values{"containerId": float64(7)}},
		"The agent edge new deed: the new thing “x”":                         {Actor: store.Actor{Kind: store.ActorAgent, Name: "edge"}, Action: "new_deed", Resource: "new_thing", Name: "x"},
		"Somebody unknown could not sign in":                                 {Actor: store.Actor{Kind: store.ActorUnknown}, Action: store.ActionSignInFailed, Resource: "session"},
		"The API key deploy ended all sessions of the user “<b>ada</b>”":     {Actor: store.Actor{Kind: store.ActorKey, ID: 5, Name: "deploy"}, Action: store.ActionSessionsEnded, Resource: "user", ResourceID: 2, Name: "<b>ada</b>"},
		"mara created the silence of notifications":                          {Actor: store.Actor{Kind: store.ActorUser, ID: 9, Name: "mara"}, Action: store.ActionCreate, Resource: "notification_silence", ResourceID: 1},
	} {
		var got strings.Builder
		for _, word := range n.sentence(e) {
			got.WriteString(word.Title)
			if word.Path != "" {
				t.Errorf("%s leads to %s", word.Title, word.Path)
			}
		}
		if got.String() != want {
			t.Errorf("%q, want %q", got.String(), want)
		}
	}
}
