package pass

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strings"

	"opensource.internal/agent/internal/apply"
	"opensource.internal/agent/render"
)

// guilt is a record that was refused, and the words of the program about it.
type guilt struct {
	record render.Record
	words  string
}

// blamed returns the records whose lines the program has named.
func (s *search) blamed(result render.Result, fault *apply.Fault) []guilt {
	var guilty []guilt
	for _, place := range fault.Places {
		for _, file := range result.Files {
			if file.Path == place.File {
				guilty = append(guilty, s.blamedIn(file, place)...)
			}
		}
	}
	return guilty
}

// blamedIn returns the records that the lines of a place belong to, none if one
// of the lines belongs to no record. Of several records, one whose line was in
// force before is not at fault.
func (s *search) blamedIn(file render.File, place apply.Place) []guilt {
	lines := strings.Split(string(file.Content), "\n")
	var all, added []guilt
	for _, number := range place.Lines {
		record, ours := file.Lines[number]
		if !ours {
			return nil
		}
		line := lines[number-1]
		g := guilt{record, fmt.Sprintf("%s (in its line: %s)", place.Words, strings.TrimSpace(line))}
		all = append(all, g)
		if !strings.Contains(s.before[file.Path], line+"\n") {
			added = append(added, g)
		}
	}
	if len(added) > 0 {
		return added
	}
	return all
}

// bisect finds a record at fault of which no line was named. It tests one half
// of the records without the other, then half of the half that is refused, and
// so on: all of it takes about as long as one test of the whole. (To look for
// the first record that is one too many would take a test of nearly the whole in
// every step, and blame a single record for what many bring about together.)
func (s *search) bisect(ctx context.Context, result render.Result) ([]guilt, error) {
	// There need be no time to apply it: the next pass goes on with what is found.
	if err := s.affords(ctx, s.tested); err != nil {
		return nil, err
	}
	all := recordsOf(result.Files[len(result.Files)-1]) // the file that is tested
	fault, err := s.test(ctx, all, nil)
	if err != nil {
		return nil, err
	}
	if fault != nil || len(all) == 0 {
		return nil, wholeError("the fault is in no record: without any of them it is refused too")
	}
	part := all
	for len(part) > 1 {
		half := part[:len(part)/2]
		if fault, err = s.test(ctx, all, half); err != nil {
			return nil, err
		}
		if fault == nil {
			half = part[len(part)/2:]
		}
		part = half
	}
	if fault, err = s.test(ctx, all, part); err != nil {
		return nil, err
	}
	if fault == nil {
		return nil, wholeError("no record is refused by itself, so none is left out")
	}
	return []guilt{{part[0], fault.Verdict}}, nil
}

// test tests a candidate with only some of all records. The fault is nil if it
// passes.
func (s *search) test(ctx context.Context, all, only []render.Record) (*apply.Fault, error) {
	if err := s.affords(ctx, 0); err != nil {
		return nil, err
	}
	facts := s.facts
	facts.Refused = maps.Clone(s.facts.Refused)
	for _, record := range all {
		facts.Refused[record] = render.Refusal{Previous: true}
	}
	for _, record := range only {
		if refusal, refused := s.facts.Refused[record]; refused {
			facts.Refused[record] = refusal
		} else {
			delete(facts.Refused, record)
		}
	}
	result, err := s.service.Render(s.pass.accepted.Snapshot, facts, s.pass.templates)
	if err != nil {
		return nil, err
	}
	s.tests++
	_, err = s.pass.engine.Test(ctx, s.service.Service, result)
	var fault *apply.Fault
	switch {
	case err == nil:
		return nil, nil
	case ctx.Err() != nil:
		return nil, errNoTime
	case errors.As(err, &fault) && fault.Elsewhere == "":
		return fault, nil
	}
	return nil, err
}

// recordsOf returns the records of files in the order of their lines.
func recordsOf(files ...render.File) []render.Record {
	var records []render.Record
	seen := map[render.Record]bool{}
	for _, file := range files {
		for _, line := range slices.Sorted(maps.Keys(file.Lines)) {
			if record := file.Lines[line]; !seen[record] {
				seen[record] = true
				records = append(records, record)
			}
		}
	}
	return records
}

// linesOf returns a digest of the lines of each record of files.
func linesOf(files []render.File) map[render.Record]string {
	hashes := map[render.Record]hash.Hash{}
	for _, file := range files {
		number := 0
		for line := range strings.Lines(string(file.Content)) {
			number++
			record, ours := file.Lines[number]
			if !ours {
				continue
			}
			if hashes[record] == nil {
				hashes[record] = sha256.New()
			}
			_, _ = io.WriteString(hashes[record], line)
		}
	}
	digests := make(map[render.Record]string, len(hashes))
	for record, hash := range hashes {
		digests[record] = hex.EncodeToString(hash.Sum(nil))
	}
	return digests
}
