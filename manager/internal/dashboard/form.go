package dashboard

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

// form is a record as people edit it. Its fields point into the record, so the
// same list shows the record, reads what was typed into it, and says where the
// store's faults belong.
type form struct {
	Fields  []*field
	Submit  string // what the button says
	Cancel  string // where the other one leads, below the prefix
	Version string // of the record as it was shown; empty for a new one
	Kinds   []kind // forms for records of another type, to go to instead
	// Faults belong to no field.
	Faults []string
	// Changed is what somebody else has made of the record meanwhile: the fields
	// that are other than what was typed.
	Changed []*field
}

// field is one input. Its Name is the JSON name that the API has for it: that is
// what faults are named by.
type field struct {
	Name, Label, Hint string
	Group             string // what it is shown under, with others
	Required          bool
	Kind              fieldKind
	Options           []option // of a choice
	Present           bool     // a password that is not new
	Username          bool     // what its person signs in by

	Value string // what is shown
	Now   string // what is stored, if somebody else has changed it
	Fault string
	store func(typed string) error
}

type fieldKind string

const (
	textInput    fieldKind = "text"
	numberInput  fieldKind = "number"
	choiceInput  fieldKind = "choice"
	checkInput   fieldKind = "check"
	severalInput fieldKind = "several"
	// passwordInput is never sent back to the browser.
	passwordInput fieldKind = "password"
)

// option is one of those that a field lets choose from.
type option struct{ Value, Label string }

// text is a field for a text; optional unless required is called.
func text(name, label string, value *string) *field {
	return &field{Name: name, Label: label, Kind: textInput, Value: *value, store: func(typed string) error {
		*value = typed
		return nil
	}}
}

// password is a field for a password that is to be set.
func password(name, label string, value *string) *field {
	return &field{Name: name, Label: label, Kind: passwordInput, store: func(typed string) error {
		*value = typed
		return nil
	}}
}

// presentPassword is a field for the one that there is, which browsers know.
func presentPassword(name, label string, value *string) *field {
	f := password(name, label, value)
	f.Present = true
	return f
}

// number is a field for a number. One that is not set is 0.
func number[N int | int64](name, label string, value *N) *field {
	shown := ""
	if *value != 0 {
		shown = strconv.FormatInt(int64(*value), 10)
	}
	return &field{Name: name, Label: label, Kind: numberInput, Value: shown, store: func(typed string) error {
		*value = 0
		if typed == "" {
			return nil
		}
		n, err := strconv.ParseInt(typed, 10, 64)
		if err != nil || int64(N(n)) != n {
			return fmt.Errorf("%q is not a whole number", typed)
		}
		*value = N(n)
		return nil
	}}
}

// choice is a field for one of several texts.
func choice(name, label string, value *string, options ...option) *field {
	f := text(name, label, value)
	f.Kind, f.Options = choiceInput, options
	return f
}

// record is a field for the id of another record, nil if it is none; the options
// are their ids and names.
func record(name, label string, value **int64, options ...option) *field {
	shown := ""
	if *value != nil {
		shown = strconv.FormatInt(**value, 10)
	}
	return &field{Name: name, Label: label, Kind: choiceInput, Options: options, Value: shown, store: func(typed string) error {
		*value = nil
		if typed == "" {
			return nil
		}
		id, err := strconv.ParseInt(typed, 10, 64)
		if err != nil {
			return errors.New("choose one of the list")
		}
		*value = &id
		return nil
	}}
}

// parent is a field for the id of another record that there has to be; 0 is none.
func parent(name, label string, value *int64, options ...option) *field {
	f := number(name, label, value)
	f.Kind, f.Options = choiceInput, options
	return f
}

// ending is a field for a time that will be, nil if it is none: a date, or in so
// long.
func ending(name, label string, value **time.Time) *field {
	shown := ""
	if *value != nil {
		shown = (*value).UTC().Format(machineTime)
	}
	return &field{Name: name, Label: label, Kind: textInput, Value: shown, store: func(typed string) error {
		switch typed = strings.TrimSpace(typed); typed {
		case shown: // to the fraction of a second
			return nil
		case "":
			*value = nil
			return nil
		}
		at, err := inventory.ParseMoment(typed, time.Now().Add)
		if err != nil {
			return err
		}
		*value = &at
		return nil
	}}
}

// check is a field for yes or no.
func check(name, label string, value *bool) *field {
	shown := ""
	if *value {
		shown = "on"
	}
	return &field{Name: name, Label: label, Kind: checkInput, Value: shown, store: func(typed string) error {
		*value = typed != ""
		return nil
	}}
}

// several is a field for any number of the options, of which no one has a comma.
func several(name, label string, value *[]string, options ...option) *field {
	return &field{Name: name, Label: label, Kind: severalInput, Options: options, Value: strings.Join(*value, ","), store: func(typed string) error {
		*value = nil
		if typed != "" {
			*value = strings.Split(typed, ",")
		}
		return nil
	}}
}

// chosen reports whether an option is one of those of a field for several.
func (f *field) chosen(o option) bool { return slices.Contains(strings.Split(f.Value, ","), o.Value) }

func (f *field) required() *field        { f.Required = true; return f }
func (f *field) username() *field        { f.Username = true; return f }
func (f *field) hint(text string) *field { f.Hint = text; return f }
func (f *field) in(group string) *field  { f.Group = group; return f }

// of takes the field's value from the address. What cannot be chosen is nothing.
func (f *field) of(v *visit) *field {
	f.Value = searchable(v.Query(f.Name))
	if f.Kind == choiceInput && !slices.ContainsFunc(f.Options, func(o option) bool { return o.Value == f.Value }) {
		f.Value = ""
	}
	return f
}

// autocomplete says what a browser may offer, and keep.
func (f *field) autocomplete() string {
	switch {
	case f.Username:
		return "username"
	case f.Kind != passwordInput:
		return "off"
	case f.Present:
		return "current-password"
	}
	return "new-password"
}

// id is the field's in the page.
func (f *field) id() string { return "field-" + f.Name }

// describedBy names what is said about the field beside its label.
func (f *field) describedBy() string {
	ids := ""
	if f.Hint != "" {
		ids = f.id() + "-hint"
	}
	if f.Fault != "" {
		ids += " " + f.id() + "-fault"
	}
	return ids
}

// shown is a value as people read it.
func (f *field) shown(value string) string {
	for _, o := range f.Options {
		if o.Value == value {
			return o.Label
		}
	}
	switch {
	case f.Kind == severalInput && value != "":
		var words []string
		for _, one := range strings.Split(value, ",") {
			words = append(words, (&field{Kind: choiceInput, Options: f.Options}).shown(one))
		}
		return strings.Join(words, ", ")
	case f.Kind == severalInput:
		return "all"
	case f.Kind == checkInput && value != "":
		return "yes"
	case f.Kind == checkInput:
		return "no"
	case value == "":
		return "not set"
	}
	return value
}

// group is some fields of a form that belong together.
type group struct {
	Title  string
	Fields []*field
}

// groups are the fields as they stand below each other.
func (f *form) groups() []group {
	var all []group
	for _, field := range f.Fields {
		if len(all) == 0 || all[len(all)-1].Title != field.Group {
			all = append(all, group{Title: field.Group})
		}
		last := &all[len(all)-1]
		last.Fields = append(last.Fields, field)
	}
	return all
}

// open reports whether there is something to be seen in a group.
func (g group) open() bool {
	return slices.ContainsFunc(g.Fields, func(f *field) bool { return f.Value != "" || f.Now != "" || f.Fault != "" })
}

// read stores what was typed into the record the fields point into.
func (f *form) read(typed url.Values) error {
	faults := map[string]string{}
	f.Version = typed.Get("version")
	for _, field := range f.Fields {
		field.Value = typed.Get(field.Name)
		if field.Kind == severalInput {
			field.Value = strings.Join(typed[field.Name], ",")
		}
		if err := field.store(field.Value); err != nil {
			faults[field.Name] = err.Error()
		}
	}
	if len(faults) > 0 {
		return &store.InvalidError{Fields: faults}
	}
	return nil
}

// refused puts an error to where it belongs in the form, if it is about what was
// typed, and returns the status of the answer; 0 if it is not.
func (f *form) refused(err error) (status int) {
	var invalid *store.InvalidError
	var credential *auth.FieldError
	var conflict *store.ConflictError
	var stale *staleError
	switch {
	case errors.As(err, &invalid):
		for name, fault := range invalid.Fields {
			f.fault(name, fault)
		}
		return http.StatusUnprocessableEntity
	case errors.As(err, &credential):
		f.fault(credential.Field, credential.Err.Error())
		return http.StatusUnprocessableEntity
	case errors.As(err, &conflict):
		f.fault(conflict.Field, conflict.Message)
		return http.StatusConflict
	case errors.As(err, &stale):
		f.compare(stale)
		return http.StatusConflict
	}
	return 0
}

func (f *form) fault(name, text string) {
	for _, field := range f.Fields {
		if field.Name == name {
			field.Fault = text
			return
		}
	}
	if name != "" {
		text = name + ": " + text
	}
	f.Faults = append(f.Faults, text)
}

// compare shows what the record has become. The form is of that version then: who
// saves it again means it.
func (f *form) compare(stale *staleError) {
	f.Version = stale.Version
	for i, now := range stale.Fields {
		if field := f.Fields[i]; now.Value != field.Value {
			field.Now = field.shown(now.Value)
			f.Changed = append(f.Changed, field)
		}
	}
}

// faulty are the fields with a fault, for the summary.
func (f *form) faulty() []*field {
	var faulty []*field
	for _, field := range f.Fields {
		if field.Fault != "" {
			faulty = append(faulty, field)
		}
	}
	return faulty
}

// staleError says that a record is not the one any more that was looked at.
type staleError struct {
	Version string   // of what it is now
	Fields  []*field // that show it
}

func (*staleError) Error() string { return "changed by somebody else meanwhile" }

// version names the content of a record.
func version(record any) string {
	content, _ := json.Marshal(record) // records of ours can be
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:12])
}

// changing is for the store's Update functions: it puts what was typed into the
// record as it is stored, unless that is another one than the person has seen.
// fields lists the fields of a record.
func changing[T any](shown *form, typed url.Values, fields func(*T) []*field) func(*T) error {
	return func(stored *T) error {
		is := version(*stored)
		now := fields(stored)
		shown.Fields = fields(stored)
		if err := shown.read(typed); err != nil {
			return err
		}
		if shown.Version != is && !slices.EqualFunc(shown.Fields, now, func(a, b *field) bool { return a.Value == b.Value }) {
			return &staleError{Version: is, Fields: now}
		}
		return nil
	}
}

// typed is what was sent with a form, or an *unreadError.
func (v *visit) typed() (url.Values, error) {
	if refused := readForm(v.Context); refused != 0 {
		return nil, &unreadError{refused}
	}
	return v.Request.PostForm, nil
}

// unreadError is a form that was not read: too slow, too large, or none.
type unreadError struct{ Status int }

func (e *unreadError) Error() string { return unreadForm(e.Status) }

// vanishing is a deletion to be confirmed. It names what goes with the record.
type vanishing struct {
	What    string // `site "lab"`
	Groups  []vanishingGroup
	Keeps   string // what stays, if that is not plain
	Cancel  string // below the prefix
	File    string // where to download what brings it back, below the prefix
	Version string
	Changed bool // since it was looked at
}

type vanishingGroup struct {
	Title string
	Names []string
}

// atOnce is how many names of a group are shown without being asked for.
const atOnce = 60

func (g vanishingGroup) first() []string { return g.Names[:min(len(g.Names), atOnce)] }
func (g vanishingGroup) rest() []string  { return g.Names[len(g.first()):] }

// add names what goes with the record, if there is anything.
func (d *vanishing) add(title string, names []string) {
	if len(names) > 0 {
		d.Groups = append(d.Groups, vanishingGroup{title, names})
	}
}

// seen reports whether the person has looked at what there is now.
func (d *vanishing) seen(typed url.Values) bool {
	d.Version = version(d.Groups)
	d.Changed = typed.Get("version") != d.Version
	return !d.Changed
}

// described says to a screen reader what stands beside a field.
func described(f *field) templ.Attributes {
	attributes := templ.Attributes{}
	if ids := f.describedBy(); ids != "" {
		attributes["aria-describedby"] = strings.TrimSpace(ids)
	}
	if f.Fault != "" {
		attributes["aria-invalid"] = "true"
	}
	if f.Required {
		attributes["aria-required"] = "true"
	}
	return attributes
}

// hinted says to a screen reader that a hint stands beside an input.
func hinted(id, hint string) templ.Attributes {
	if hint == "" {
		return nil
	}
	return templ.Attributes{"aria-describedby": id}
}
