package preflight

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// lines returns findings as they are printed.
func lines(findings []Finding) []string {
	var all []string
	for _, finding := range findings {
		all = append(all, finding.String())
	}
	return all
}

// wantLines wants as many findings. The line of each has to begin with the words
// before the first " … ", and to have the others in their order.
func wantLines(t *testing.T, findings []Finding, want ...string) {
	t.Helper()
	got := lines(findings)
	same := len(got) == len(want)
	for i := 0; same && i < len(want); i++ {
		first, others, _ := strings.Cut(want[i], " … ")
		rest, found := strings.CutPrefix(got[i], first)
		same = same && found
		for word := range strings.SplitSeq(others, " … ") {
			_, rest, found = strings.Cut(rest, word)
			same = same && found
		}
	}
	if !same {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestABrokenCheckStopsNoOther(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	all := []check{
		{"one", func(context.Context, *Options) []Finding { return list(ok("fine")) }},
		{"two", func(context.Context, *Options) []Finding { panic("oh dear") }},
		{"three", func(context.Context, *Options) []Finding { <-release; return nil }},
		{"four", func(ctx context.Context, _ *Options) []Finding {
			<-ctx.Done()
			return list(warn("wait", "still in its own words"))
		}},
		{"five", func(context.Context, *Options) []Finding {
			return append(named("other", ok("a")), warn("do it", "b"))
		}},
	}
	var found []Finding
	start := time.Now()
	worst := run(t.Context(), all, &Options{}, 50*time.Millisecond, func(f Finding) { found = append(found, f) })
	wantLines(t, found,
		"OK    one: fine",
		"WARN  two: the check itself broke: oh dear … To do: ",
		"FAIL  three: no result in time … To do: ",
		"WARN  four: still in its own words. To do: wait",
		"OK    other: a",
		"WARN  five: b. To do: do it",
	)
	if worst != Fail {
		t.Errorf("the worst is %v", worst)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestAFindingIsOneLine(t *testing.T) {
	finding := fail("first\nsecond", "a\x1b[31m\nb\r\nc %s", strings.Repeat("x", 2*maxLine))
	finding.Check = "nginx"
	line := finding.String()
	if strings.ContainsAny(line, "\n\r\x1b") || len(line) > 2*maxLine || !strings.HasPrefix(line, "FAIL  nginx: ") {
		t.Errorf("got %q", line)
	}
}

func TestFindingsAsJSON(t *testing.T) {
	content, err := json.Marshal(named("port 80", ok("free"), fail("end it", "taken")))
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"level":"ok","check":"port 80","found":"free"},{"level":"fail","check":"port 80","found":"taken","fix":"end it"}]`
	if diff := cmp.Diff(want, string(content)); diff != "" {
		t.Error(diff)
	}
}
