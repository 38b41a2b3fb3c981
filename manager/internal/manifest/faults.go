package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

// Fault is something that a manifest gets wrong.
type Fault struct {
	Place
	Path    string `json:"path"` // such as containers[2].ipv4Address; "" if it is no field
	Message string `json:"message"`
}

func (f Fault) String() string {
	var parts []string
	if f.File != "" {
		parts = append(parts, f.File)
	}
	if f.Line > 0 {
		parts = append(parts, fmt.Sprint(f.Line))
	}
	if f.Column > 0 {
		parts = append(parts, fmt.Sprint(f.Column))
	}
	text := f.Message
	if f.Path != "" {
		text = f.Path + ": " + text
	}
	if len(parts) == 0 {
		return text
	}
	return strings.Join(parts, ":") + ": " + text
}

// FaultsError are all faults that were found, in the order of the files.
type FaultsError struct {
	Faults []Fault `json:"faults"`
}

func (e *FaultsError) Error() string {
	lines := make([]string, len(e.Faults))
	for i, fault := range e.Faults {
		lines[i] = fault.String()
	}
	return strings.Join(lines, "\n")
}

// faults gathers what is wrong.
type faults []Fault

func (f *faults) add(at Place, path, format string, args ...any) {
	*f = append(*f, Fault{Place: at, Path: path, Message: fmt.Sprintf(format, args...)})
}

// field adds a fault of a record's field, unless it has one already.
func (f *faults) field(r *record, name, format string, args ...any) {
	r.broken = true
	if r.told[name] {
		return
	}
	at, path := r.where(name)
	r.told[name] = true
	f.add(at, path, format, args...)
}

// ours are the names that manifests have for the API's fields: they refer by
// name, not by id.
var ours = map[string]string{"nodeId": "node", "externalDomainId": "externalDomain", "defaultSiteId": "defaultSite"}

// of adds what a check of a record found.
func (f *faults) of(r *record, err error) {
	var invalid *inventory.InvalidError
	var conflict *store.ConflictError
	switch {
	case err == nil:
	case errors.As(err, &invalid):
		for _, name := range slices.Sorted(maps.Keys(invalid.Fields)) {
			f.field(r, named(name), "%s", invalid.Fields[name])
		}
	case errors.As(err, &conflict):
		message := conflict.Message
		if len(conflict.Holders) > 0 {
			message += " (" + strings.Join(conflict.Holders, ", ") + ")"
		}
		f.field(r, named(conflict.Field), "%s", message)
	default:
		f.add(r.at, r.path, "%v", err)
	}
}

func named(field string) string {
	if name, found := ours[field]; found {
		return name
	}
	return field
}

// errBroken marks changes of records with faults that were told already: they
// are not tried, and what depends on them is not blamed.
var errBroken = errors.New("has faults")

func (r *record) err() error {
	if r.broken {
		return errBroken
	}
	return nil
}

// err is nil if nothing is wrong.
func (f faults) err(files []string) error {
	if len(f) == 0 {
		return nil
	}
	sorted := slices.Clone(f)
	slices.SortStableFunc(sorted, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(slices.Index(files, a.File), slices.Index(files, b.File)), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &FaultsError{sorted}
}
