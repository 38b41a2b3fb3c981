package dashboard

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

// actorKinds are what stands before or after the name of who did something.
var actorKinds = map[store.ActorKind][2]string{
	store.ActorUser: {"", ""}, store.ActorKey: {"The API key ", ""}, store.ActorCommand: {"", " on the command line"}, store.ActorAgent: {"The agent ", ""},
}

// deeds are what is done to a record, by action: the words before it, and those
// that the choice between actions has.
var deeds = map[store.Action]struct{ Did, Choice string }{
	store.ActionCreate: {"created", "Created"}, store.ActionUpdate: {"changed", "Changed"}, store.ActionDelete: {"deleted", "Deleted"},
	store.ActionSignIn: {"signed in", "Signed in"}, store.ActionSignInFailed: {"could not sign in", "Could not sign in"}, store.ActionSignOut: {"signed out", "Signed out"},
	store.ActionPasswordChanged: {"changed the password of", "Changed a password"}, store.ActionSessionsEnded: {"ended all sessions of", "Ended all sessions of a user"},
	store.ActionKeyCreated: {"created", "Created an API key"}, store.ActionKeyRevoked: {"revoked", "Revoked an API key"},
	store.ActionConfirmRemovals: {"confirmed what is removed from", "Confirmed removals"}, store.ActionPin: {"pinned", "Pinned a site"}, store.ActionUnpin: {"unpinned", "Unpinned a site"},
	store.ActionPublish: {"published the changes of", "Published changes"}, store.ActionSetBack: {"set back the inventory of", "Set an inventory back"}, store.ActionRestore: {"restored", "Restored a backup"},
}

// resourceNames are the kinds of records as the pages call them.
var resourceNames = map[string]string{
	"site": "site", "node": "node", "container": "container", "service": "service", "volume": "volume", "external_domain": "domain", "agent": "agent",
	"user": "user", "api_key": "API key", "session": "session", "enrollment": "install command", "notification_target": "notification target",
	"notification_silence": "silence of notifications", "database": "database",
}

// recordPages are where the records of a kind are shown, by id.
var recordPages = map[string]func(int64) string{
	"site": sitePath, "node": nodePath, "container": containerPath, "service": servicePath, "volume": volumePath,
	"external_domain": domainPath, "agent": agentPath, "user": userPath, "api_key": keyPath, "enrollment": enrollmentPath, "notification_target": targetPath,
}

// auditedFields are the fields of the forms: the log calls them as those do.
var auditedFields = map[string][]*field{
	"site":      siteFields(&inventory.Site{}),
	"node":      nodeFields(&inventory.Node{}),
	"container": containerFields(nil)(&inventory.Container{}),
	"service": slices.Concat([]*field{choice("type", "Kind", new(string), serviceKinds...)},
		httpFields(&inventory.Service{}, nil), transportFields(&inventory.Service{}, store.Site{})[:1], transportFields(&inventory.Service{}, store.Site{})[2:],
		serviceFields(store.Site{}, nil)(&inventory.Service{Type: inventory.ServiceDNS})),
	"volume":              volumeFields(&inventory.Volume{}),
	"external_domain":     domainFields(nil)(&inventory.ExternalDomain{}),
	"user":                localFields(&editedUser{}),
	"api_key":             keyFields(nil)(&wantedKey{}),
	"notification_target": targetFields(nil)(&wantedTarget{}),
}

// otherFields are those that no form has.
var otherFields = map[string]string{
	"containerId": "Container", "hostPath": "Path on the host", "uid": "Owner there", "gid": "Group there", "recordType": "Record", "hostname": "Host",
	"prefix": "Begins with", "createdBy": "Made by", "expiresAt": "Expires", "revokedAt": "Revoked", "usedAt": "Used", "usedBy": "Used by", "apiKeyId": "API key",
	"issuer": "Signs in with", "subject": "Known there as", "disabledAt": "Disabled", "urlSetAt": "URL set", "until": "Until", "reason": "Reason",
	"revision": "Revision", "etag": "Tag", "note": "Note",
}

// referring are the fields that name other records by id, and their kind.
var referring = map[string]string{
	"containerId": "container", "nodeId": "node", "externalDomainId": "external_domain", "defaultSiteId": "site", "siteIds": "site", "apiKeyId": "api_key",
}

// narrator tells the entries of the audit log as people would.
type narrator struct {
	known map[store.Ref]store.Recalled
}

// narrate looks up the records that entries are about, and those by which they
// are told.
func (d *dashboard) narrate(v *visit, entries []store.AuditEntry) (narrator, error) {
	var refs []store.Ref
	for _, e := range entries {
		refs = append(refs, store.Ref{Resource: "site", ID: e.SiteID}, subjectRef(e), actorRef(e.Actor))
		for _, values := range []store.Values{e.Before, e.After} {
			for name, value := range values {
				for _, id := range idsIn(value) {
					refs = append(refs, store.Ref{Resource: referring[name], ID: id})
				}
			}
		}
	}
	known, err := d.store.Recall(v.Request.Context(), refs)
	if err != nil {
		return narrator{}, err
	}
	// Their containers are told, too.
	var containers []store.Ref
	for _, record := range known {
		containers = append(containers, store.Ref{Resource: "container", ID: record.ContainerID})
	}
	more, err := d.store.Recall(v.Request.Context(), containers)
	maps.Copy(known, more)
	return narrator{known}, err
}

// subjectRef is the record that an entry is about. A session is known by whose
// it is.
func subjectRef(e store.AuditEntry) store.Ref {
	if e.Resource == "session" {
		return store.Ref{Resource: "user", ID: e.ResourceID}
	}
	return store.Ref{Resource: e.Resource, ID: e.ResourceID}
}

func actorRef(who store.Actor) store.Ref {
	if who.Kind == store.ActorKey {
		return store.Ref{Resource: "api_key", ID: who.ID}
	}
	return store.Ref{Resource: "user", ID: who.ID} // 0 of all others
}

// idsIn are the ids in a value of JSON.
func idsIn(value any) []int64 {
	switch value := value.(type) {
	case float64:
		return []int64{int64(value)}
	case []any:
		var ids []int64
		for _, one := range value {
			ids = append(ids, idsIn(one)...)
		}
		return ids
	}
	return nil
}

// sentence says who did what.
func (n narrator) sentence(e store.AuditEntry) []crumb {
	did := deeds[e.Action].Did
	if did == "" {
		did = spaced(string(e.Action)) + ":"
	}
	words := append(n.who(e.Actor), crumb{Title: " " + did})
	if e.Resource != "session" {
		return append(words, n.thing(e)...)
	}
	if e.Action == store.ActionSignInFailed && e.Name != "" {
		return append(words, crumb{Title: " as "}, n.named(subjectRef(e), e.Name))
	}
	return words
}

func (n narrator) who(who store.Actor) []crumb {
	around, named := actorKinds[who.Kind]
	switch {
	case who.Kind == store.ActorSystem:
		return []crumb{{Title: "The manager"}}
	case !named || who.Name == "":
		return []crumb{{Title: "Somebody unknown"}}
	}
	return []crumb{{Title: around[0]}, n.link(actorRef(who), who.Name), {Title: around[1]}}
}

// thing is the record that an entry is about, and what it belongs to.
func (n narrator) thing(e store.AuditEntry) []crumb {
	kind := resourceNames[e.Resource]
	if kind == "" {
		kind = spaced(e.Resource)
	}
	words := []crumb{{Title: " the " + kind}}
	if e.Name != "" {
		words = append(words, crumb{Title: " "}, n.named(subjectRef(e), e.Name))
	}
	if container := n.containerOf(e); container != 0 {
		words = append(words, crumb{Title: " of the container "}, n.record(store.Ref{Resource: "container", ID: container}))
	}
	return words
}

func (n narrator) containerOf(e store.AuditEntry) int64 {
	for _, values := range []store.Values{e.After, e.Before} {
		if ids := idsIn(values["containerId"]); len(ids) > 0 {
			return ids[0]
		}
	}
	return n.known[subjectRef(e)].ContainerID
}

// link is a name, which leads to the record if there still is one.
func (n narrator) link(ref store.Ref, name string) crumb {
	if known, told := n.known[ref]; told && !known.Gone && recordPages[ref.Resource] != nil {
		return crumb{name, recordPages[ref.Resource](ref.ID)}
	}
	return crumb{Title: name}
}

// named is link, with quotes around what leads nowhere.
func (n narrator) named(ref store.Ref, name string) crumb {
	c := n.link(ref, name)
	if c.Path == "" {
		c.Title = "“" + name + "”"
	}
	return c
}

// record is another record by its name.
func (n narrator) record(ref store.Ref) crumb {
	known, told := n.known[ref]
	switch {
	case !told || known.Name == "":
		return crumb{Title: fmt.Sprintf("%d (deleted)", ref.ID)}
	case known.Gone:
		return crumb{Title: "“" + known.Name + "” (deleted)"}
	}
	return n.link(ref, known.Name)
}

// site is the site that an entry belongs to.
func (n narrator) site(e store.AuditEntry) cell {
	if e.SiteID == 0 {
		return cell{}
	}
	return cell{Parts: []crumb{n.record(store.Ref{Resource: "site", ID: e.SiteID})}}
}

// changes are the values that changed, each as "Field: old → new".
func (n narrator) changes(e store.AuditEntry) [][]crumb {
	names := map[string]bool{}
	for _, values := range []store.Values{e.Before, e.After} {
		for name := range values {
			names[name] = true
		}
	}
	delete(names, "containerId") // the sentence names it
	var lines [][]crumb
	for _, name := range slices.SortedFunc(maps.Keys(names), byLabel(e.Resource)) {
		was, before := e.Before[name]
		became, after := e.After[name]
		line := []crumb{{Title: labelIn(e.Resource, name) + ": "}}
		switch {
		case before && after:
			line = slices.Concat(line, n.value(e, name, was), []crumb{{Title: " → "}}, n.value(e, name, became))
		case before:
			line = slices.Concat(line, n.value(e, name, was))
		default:
			line = slices.Concat(line, n.value(e, name, became))
		}
		lines = append(lines, line)
	}
	return lines
}

// byLabel sorts fields as the form has them, then the others by name.
func byLabel(resource string) func(a, b string) int {
	at := func(name string) int {
		if i := slices.IndexFunc(auditedFields[resource], func(f *field) bool { return f.Name == name }); i >= 0 {
			return i
		}
		return len(auditedFields[resource])
	}
	return func(a, b string) int {
		if at(a) != at(b) {
			return at(a) - at(b)
		}
		return strings.Compare(a, b)
	}
}

// fieldOf is the field of the form, nil if there is none.
func fieldOf(resource, name string) *field {
	for _, f := range auditedFields[resource] {
		if f.Name == name {
			return f
		}
	}
	return nil
}

func labelIn(resource, name string) string {
	if f := fieldOf(resource, name); f != nil {
		return f.Label
	}
	if label, known := otherFields[name]; known {
		return label
	}
	return apart(name)
}

// apart writes the API's name of a field as words: ipv4Address is "ipv4 address".
func apart(name string) string {
	var words strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			words.WriteRune(' ')
		}
		words.WriteRune(unicode.ToLower(r))
	}
	return words.String()
}

// value is one value as people read it. Records are named.
func (n narrator) value(e store.AuditEntry, name string, value any) []crumb {
	ids := idsIn(value)
	switch resource := referring[name]; {
	case len(ids) > 0 && resource != "":
		var words []crumb
		for i, id := range ids {
			if i > 0 {
				words = append(words, crumb{Title: ", "})
			}
			words = append(words, n.record(store.Ref{Resource: resource, ID: id}))
		}
		return words
	case len(ids) == 1 && name == "revision":
		if site := n.known[store.Ref{Resource: "site", ID: e.SiteID}]; site.Name != "" && !site.Gone {
			return []crumb{{fmt.Sprint(ids[0]), revisionPath(e.SiteID, ids[0])}}
		}
	}
	return []crumb{{Title: valueIn(e.Resource, name, value)}}
}

// longValue is how much of a value is shown.
const longValue = 300

func valueIn(resource, name string, value any) string {
	f := fieldOf(resource, name)
	if f == nil {
		f = &field{Kind: textInput}
	}
	switch value := value.(type) {
	case nil:
		return f.shown("")
	case string:
		return shownText(f, value)
	case bool:
		return yesOrNo(value, "yes", "no")
	case []any:
		var texts []string
		for _, one := range value {
			texts = append(texts, fmt.Sprint(one))
		}
		return shownText(f, strings.Join(texts, ","))
	}
	content, _ := json.Marshal(value) // was JSON
	return string(content)
}

func shownText(f *field, text string) string {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.UTC().Format(humanTime)
	}
	if words := f.shown(text); utf8.RuneCountInString(words) <= longValue {
		return words
	}
	return string([]rune(text)[:longValue]) + "…"
}
