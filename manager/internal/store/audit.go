package store

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"gorm.io/gorm"
)

// Action is what somebody did.
type Action string

// The actions. Every create, update and delete of a record goes by the first
// three, unless there is a better word for it.
const (
	ActionCreate          Action = "create"
	ActionUpdate          Action = "update"
	ActionDelete          Action = "delete"
	ActionSignIn          Action = "sign_in"
	ActionSignInFailed    Action = "sign_in_failed"
	ActionSignOut         Action = "sign_out"
	ActionPasswordChanged Action = "password_changed"
	ActionSessionsEnded   Action = "sessions_ended"
	ActionKeyCreated      Action = "key_created"
	ActionKeyRevoked      Action = "key_revoked"
	ActionConfirmRemovals Action = "confirm_removals"
	ActionPin             Action = "pin"
	ActionUnpin           Action = "unpin"
	ActionPublish         Action = "publish"
	ActionSetBack         Action = "set_back"
	ActionRestore         Action = "restore"
)

// Actions are all actions.
func Actions() []Action {
	return []Action{
		ActionCreate, ActionUpdate, ActionDelete, ActionSignIn, ActionSignInFailed, ActionSignOut, ActionPasswordChanged, ActionSessionsEnded,
		ActionKeyCreated, ActionKeyRevoked, ActionConfirmRemovals, ActionPin, ActionUnpin, ActionPublish, ActionSetBack, ActionRestore,
	}
}

// Resources are all kinds of records that are audited.
func Resources() []string {
	return []string{
		"site", "node", "container", "service", "volume", "external_domain", "agent", "user", "api_key", "session",
		"enrollment", "notification_target", "notification_silence", "database",
	}
}

// AuditEntry is something that somebody did.
type AuditEntry struct {
	ID         int64
	At         time.Time
	Actor      Actor `gorm:"embedded;embeddedPrefix:actor_"`
	Action     Action
	Resource   string // the kind of record, such as "container"
	ResourceID int64
	Name       string // the record's
	SiteID     int64  // 0 if it belongs to none
	// Before and After are the values that changed, by JSON name; of a new
	// record all that are set, of a deleted one all that were. Never a secret.
	Before Values `gorm:"column:old_values"`
	After  Values `gorm:"column:new_values"`
	// Times is how often; more than once only for failed sign-ins.
	Times int64
}

// TableName implements gorm's schema.Tabler.
func (AuditEntry) TableName() string { return "audit" }

// Subject is what an entry is about.
type Subject struct {
	Resource string
	ID       int64
	Name     string
	SiteID   int64
}

// audited is a record whose changes are kept in the audit log, by insert, save,
// remove and removeOne. A field that nobody is to read there, because it is a
// secret or only what the manager notes, has the tag `audit:"-"`.
type audited interface{ subject() Subject }

// actedOn is an audited record that has better words for some of its changes
// than create and update. It is nil before it was created.
type actedOn interface {
	action(plain Action, before any) Action
}

// AuditFilter chooses entries. Zero fields choose all.
type AuditFilter struct {
	ActorKind  ActorKind
	Actor      string // name
	Action     Action
	Resource   string
	ResourceID int64
	SiteID     int64
	Since      time.Time // inclusive
	Until      time.Time // exclusive
}

var auditSort = map[string]string{"at": "at"}

// ListAudit returns a page of the audit log, the newest first, and the number
// of all entries that match. Sort: id, at.
func (s *Store) ListAudit(ctx context.Context, filter AuditFilter, opts ListOptions) ([]AuditEntry, int64, error) {
	query := where(s.reader(ctx), "actor_kind", filter.ActorKind)
	query = where(query, "actor_name", filter.Actor)
	query = where(query, "action", filter.Action)
	query = where(query, "resource", filter.Resource)
	query = where(query, "resource_id", filter.ResourceID)
	query = where(query, "site_id", filter.SiteID)
	return list[AuditEntry](between(query, filter.Since, filter.Until), opts.newestFirst(), auditSort,
		"name", "actor_name", "actor_address", "actor_request_id", "old_values", "new_values")
}

// between adds what is asked of the time of entries.
func between(query *gorm.DB, since, until time.Time) *gorm.DB {
	if !since.IsZero() {
		query = query.Where("at >= ?", since.UTC())
	}
	if !until.IsZero() {
		query = query.Where("at < ?", until.UTC())
	}
	return query
}

// containing looks for a text in columns, in either case.
func containing(query *gorm.DB, text string, columns ...string) *gorm.DB {
	pattern := "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(fold(text)) + "%"
	var conditions []string
	var args []any
	for _, column := range columns {
		folded, letters := folded(column, text)
		conditions = append(conditions, folded+` LIKE ? ESCAPE '\'`)
		args = append(append(args, letters...), pattern)
	}
	return query.Where("("+strings.Join(conditions, " OR ")+")", args...)
}

// Audit keeps an act that is no change of a record. Who did it is in the
// context.
func (s *Store) Audit(ctx context.Context, action Action, of Subject, more Values) error {
	return s.update(ctx, func(tx *gorm.DB) error { return auditAct(tx, action, of, more) })
}

// auditAct keeps an act in the transaction in which it is done.
func auditAct(tx *gorm.DB, action Action, of Subject, more Values) error {
	return keepAudit(tx, []AuditEntry{newEntry(tx, action, of, nil, more)})
}

// auditSite is auditAct for what was done to a site.
func auditSite(tx *gorm.DB, action Action, siteID int64, more Values) error {
	site, err := get[Site](tx, siteID)
	if err != nil {
		return err
	}
	return auditAct(tx, action, site.subject(), more)
}

// audit keeps a change in the transaction that makes it. A record that was not
// there before, or is not afterwards, is nil. Records that are not audited, and
// an update that changed nothing people would see, leave no entry.
func audit(tx *gorm.DB, action Action, before, after any) error {
	entry, ok, err := entryOf(tx, action, before, after)
	if err != nil || !ok {
		return err
	}
	return keepAudit(tx, []AuditEntry{entry})
}

// auditAll is audit for many deleted records at once.
func auditAll[T any](tx *gorm.DB, action Action, rows []T) error {
	entries := make([]AuditEntry, 0, len(rows))
	for _, row := range rows {
		entry, ok, err := entryOf(tx, action, row, nil)
		if err != nil {
			return err
		}
		if ok {
			entries = append(entries, entry)
		}
	}
	return keepAudit(tx, entries)
}

func isAudited[T any]() bool {
	_, is := any(*new(T)).(audited)
	return is
}

func entryOf(tx *gorm.DB, action Action, before, after any) (entry AuditEntry, ok bool, err error) {
	record, ok := after.(audited)
	if !ok {
		if record, ok = before.(audited); !ok {
			return AuditEntry{}, false, nil
		}
	}
	if better, ok := after.(actedOn); ok {
		action = better.action(action, before)
	}
	was, err := valuesOf(tx, before)
	if err != nil {
		return AuditEntry{}, false, err
	}
	became, err := valuesOf(tx, after)
	if err != nil {
		return AuditEntry{}, false, err
	}
	if before != nil && after != nil {
		if was, became = changed(was, became); len(was)+len(became) == 0 && action == ActionUpdate {
			return AuditEntry{}, false, nil
		}
	} else {
		was, became = was.set(), became.set()
	}
	return newEntry(tx, action, record.subject(), was, became), true, nil
}

func newEntry(tx *gorm.DB, action Action, of Subject, before, after Values) AuditEntry {
	return AuditEntry{
		At: now(), Actor: ActorOf(tx.Statement.Context), Action: action,
		Resource: of.Resource, ResourceID: of.ID, Name: of.Name, SiteID: of.SiteID,
		Before: before, After: after, Times: 1,
	}
}

// auditLater gathers the entries of a transaction with many changes, which keeps
// them before it ends.
type auditLater struct{ entries []AuditEntry }

type auditLaterKey struct{}

// auditingLater runs fn and keeps its entries at the end.
func auditingLater(tx *gorm.DB, fn func(tx *gorm.DB) error) error {
	tx = tx.WithContext(context.WithValue(tx.Statement.Context, auditLaterKey{}, &auditLater{}))
	if err := fn(tx); err != nil {
		return err
	}
	return keepGathered(tx)
}

// keepGathered keeps what a transaction has gathered so far, for who reads the
// log within it.
func keepGathered(tx *gorm.DB) error {
	later, gathering := tx.Statement.Context.Value(auditLaterKey{}).(*auditLater)
	if !gathering {
		return nil
	}
	entries := later.entries
	later.entries = nil
	return writeAudit(tx, entries)
}

// auditBatch is how many entries one statement writes.
const auditBatch = 500

func keepAudit(tx *gorm.DB, entries []AuditEntry) error {
	if later, gathering := tx.Statement.Context.Value(auditLaterKey{}).(*auditLater); gathering {
		later.entries = append(later.entries, entries...)
		return nil
	}
	return writeAudit(tx, entries)
}

func writeAudit(tx *gorm.DB, entries []AuditEntry) error {
	if len(entries) == 0 {
		return nil
	}
	if err := tx.CreateInBatches(&entries, auditBatch).Error; err != nil {
		return fmt.Errorf("keep audit entries: %w", err)
	}
	return nil
}

// Values are values of a record by their JSON names.
type Values map[string]any

// notValues are columns that an entry tells otherwise, or need not tell.
var notValues = map[string]bool{"id": true, "site_id": true, "created_at": true, "updated_at": true}

// valuesOf reads what people set of a record.
func valuesOf(tx *gorm.DB, record any) (Values, error) {
	if record == nil {
		return nil, nil
	}
	parsed := &gorm.Statement{DB: tx}
	if err := parsed.Parse(record); err != nil {
		return nil, fmt.Errorf("read the values of a %T: %w", record, err)
	}
	values := Values{}
	for _, field := range parsed.Schema.Fields {
		if field.DBName == "" || notValues[field.DBName] || field.Tag.Get("audit") == "-" {
			continue
		}
		value, _ := field.ValueOf(tx.Statement.Context, reflect.ValueOf(record))
		values[camelCase(field.DBName)] = plainValue(value)
	}
	return values, nil
}

// plainValue is a value as JSON has it, so that a pointer equals another one to
// the same value.
func plainValue(value any) any {
	v := reflect.ValueOf(value)
	if v.Kind() != reflect.Pointer {
		return value
	}
	if v.IsNil() {
		return nil
	}
	return v.Elem().Interface()
}

// set leaves out what is not set.
func (v Values) set() Values {
	set := Values{}
	for name, value := range v {
		if value != nil && !reflect.ValueOf(value).IsZero() {
			set[name] = value
		}
	}
	return set
}

// changed leaves the values that differ.
func changed(before, after Values) (was, became Values) {
	was, became = Values{}, Values{}
	for name, value := range after {
		if !reflect.DeepEqual(before[name], value) {
			was[name], became[name] = before[name], value
		}
	}
	return was, became
}

// camelCase is the JSON name of a column.
func camelCase(column string) string {
	words := strings.Split(column, "_")
	for i, word := range words[1:] {
		words[i+1] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}

// Scan implements sql.Scanner. What cannot be read hides no entry.
func (v *Values) Scan(value any) error {
	*v = nil
	stored, _ := value.(string)
	if stored != "" && json.Unmarshal([]byte(stored), v) != nil {
		*v = nil
	}
	return nil
}

// Value implements driver.Valuer.
func (v Values) Value() (driver.Value, error) {
	if len(v) == 0 {
		return "", nil
	}
	data, err := json.Marshal(v)
	return string(data), err
}

// maxFailedSignIns is how many entries of failed sign-ins a minute gets, however
// many addresses they come from. The rest share one without an address.
const maxFailedSignIns = 60

// AuditFailedSignIn keeps that somebody could not sign in. Those of one address
// to one account within a minute are one entry, so that whoever guesses
// passwords fills no disk. The account is named only if it exists: what else is
// typed there may be a password.
func (s *Store) AuditFailedSignIn(ctx context.Context, account Subject) error {
	return s.update(ctx, func(tx *gorm.DB) error {
		entry := newEntry(tx, ActionSignInFailed, account, nil, nil)
		minute := tx.Model(&AuditEntry{}).Where("action = ? AND at >= ?", ActionSignInFailed, entry.At.Truncate(time.Minute)).
			Session(&gorm.Session{})
		if done, err := again(minute, entry); done || err != nil {
			return err
		}
		var entries int64
		if err := minute.Count(&entries).Error; err != nil {
			return fmt.Errorf("count failed sign-ins: %w", err)
		}
		if entries >= maxFailedSignIns {
			entry.Actor, entry.Name, entry.ResourceID = Actor{Kind: ActorUnknown}, "", 0
			if done, err := again(minute, entry); done || err != nil {
				return err
			}
		}
		return keepAudit(tx, []AuditEntry{entry})
	})
}

// again counts another failed sign-in on the entry of its minute, if it has one.
func again(minute *gorm.DB, entry AuditEntry) (bool, error) {
	result := minute.Where("actor_address = ? AND name = ?", entry.Actor.Address, entry.Name).
		Update("times", gorm.Expr("times + 1"))
	if result.Error != nil {
		return false, fmt.Errorf("count a failed sign-in: %w", result.Error)
	}
	return result.RowsAffected > 0, nil
}
