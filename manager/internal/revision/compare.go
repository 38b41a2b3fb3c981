package revision

import "opensource.internal/agent/checkin"

// Compare lists what differs between two snapshots: by resource, and within one
// in the order of the records, what is gone last.
func Compare(before, after checkin.Snapshot) []Change {
	changes := []Change{}
	for _, kind := range kinds {
		changes = append(changes, kind.compare(kind.records(before), kind.records(after))...)
	}
	return changes
}

// kind is a resource with the names of its fields, and how its records are read
// from a snapshot.
type kind struct {
	resource Resource
	fields   []string
	records  func(checkin.Snapshot) []record
}

// record is one record of a snapshot.
type record struct {
	id   int64
	name string
	// marks are what a record is recognised by in another snapshot, the most
	// certain first: with two names exchanged, the first mark decides. An empty
	// one says nothing.
	marks  [maxMarks]string
	values []any // of the kind's fields; nil for what is not set
}

const maxMarks = 3

func (k kind) compare(before, after []record) []Change {
	var changes []Change
	add := func(change Change, then, now record) {
		if change.Fields = k.differing(then, now); len(change.Fields) > 0 {
			change.Resource = k.resource
			changes = append(changes, change)
		}
	}
	former, gone := match(before, after)
	for i, now := range after {
		change := Change{Action: Added, ID: now.id, Name: now.name}
		var then record
		if at := former[i]; at >= 0 {
			change.Action, then = Changed, before[at]
			if then.name != now.name {
				change.Former = then.name
			}
		}
		add(change, then, now)
	}
	for _, then := range gone {
		add(Change{Action: Removed, ID: then.id, Name: then.name}, then, record{})
	}
	return changes
}

// differing lists the fields in which two versions of a record differ.
func (k kind) differing(then, now record) []Field {
	fields := []Field{}
	for i, name := range k.fields {
		if from, to := then.value(i), now.value(i); from != to {
			fields = append(fields, Field{Name: name, From: from, To: to})
		}
	}
	return fields
}

// value is nil for every field of a record that is not there.
func (r record) value(field int) any {
	if r.values == nil {
		return nil
	}
	return r.values[field]
}

// match finds for each record of after its place in before, -1 for one that is
// new, and those of before that are gone.
func match(before, after []record) (former []int, gone []record) {
	former = make([]int, len(after))
	for i := range former {
		former[i] = -1
	}
	taken := make([]bool, len(before))
	for mark := range maxMarks {
		places := map[string]int{}
		for i, then := range before {
			if then.marks[mark] != "" && !taken[i] {
				places[then.marks[mark]] = i
			}
		}
		for i, now := range after {
			if at, found := places[now.marks[mark]]; found && former[i] < 0 && !taken[at] {
				former[i], taken[at] = at, true
			}
		}
	}
	for i, then := range before {
		if !taken[i] {
			gone = append(gone, then)
		}
	}
	return former, gone
}
