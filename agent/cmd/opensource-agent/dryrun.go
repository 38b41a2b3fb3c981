package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"opensource.internal/agent/internal/pass"
	"opensource.internal/agent/internal/status"
	"opensource.internal/agent/internal/volumes"
)

// dryRun tells what a pass would do. All that is written lies in a folder that
// is removed again.
func dryRun(ctx context.Context, env environment, options pass.Options) pass.Code {
	folder, err := os.MkdirTemp("", "opensource-agent-")
	if err != nil {
		return env.fail(pass.Unexpected, fmt.Errorf("make a folder for candidates: %w", err))
	}
	defer os.RemoveAll(folder)
	options.Log = slog.New(slog.DiscardHandler) // it would speak of what is not done
	foreseen, code, err := pass.Foresee(ctx, options, folder)
	if err != nil {
		return env.fail(code, pass.Advised(err, "run --dry-run"))
	}
	if err := tellForeseen(env.stdout, foreseen); err != nil {
		return env.fail(pass.Unexpected, err)
	}
	return code
}

func tellForeseen(out io.Writer, f pass.Foreseen) error {
	var text strings.Builder
	text.WriteString(comparedWith(f))
	if f.Guard != nil {
		fmt.Fprintf(&text, "held back: the new snapshot removes %s: %s\n", pass.Removals(*f.Guard), strings.Join(f.Removing, ", "))
	}
	for _, service := range f.Services {
		text.WriteString(foreseenService(service))
	}
	for _, volume := range f.Volumes {
		text.WriteString(foreseenVolume(volume))
	}
	for _, warning := range f.Warnings {
		fmt.Fprintf(&text, "not found out: %v\n", warning)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// comparedWith says what the host is compared with.
func comparedWith(f pass.Foreseen) string {
	var text strings.Builder
	if f.Manager != nil {
		fmt.Fprintf(&text, "no answer of the manager to go by: %v\n", f.Manager)
	}
	snapshot := strings.TrimSpace("snapshot " + status.ShortTag(f.ETag))
	switch at := f.AcceptedAt.Local().Format("2006-01-02 15:04:05 MST"); {
	case f.Fresh:
		fmt.Fprintf(&text, "compared with %s, which the manager has just sent\n", snapshot)
	case f.Released:
		fmt.Fprintf(&text, "compared with %s, which was held back and would be accepted now\n", snapshot)
	case f.AcceptedAt.IsZero():
		text.WriteString("no snapshot was ever accepted: nothing would be done\n")
	case f.Manager != nil:
		fmt.Fprintf(&text, "compared with %s, accepted %s\n", snapshot, at)
	case f.Guard != nil:
		fmt.Fprintf(&text, "compared with %s, accepted %s; what the manager has is held back\n", snapshot, at)
	default:
		fmt.Fprintf(&text, "compared with %s, accepted %s; the manager has nothing newer\n", snapshot, at)
	}
	return text.String()
}

func foreseenService(s pass.ForeseenService) string {
	var text strings.Builder
	fmt.Fprintf(&text, "\n%s: %s\n", s.Name, verdict(s))
	if s.Refused != "" {
		text.WriteString("  " + strings.ReplaceAll(strings.TrimSpace(s.Refused), "\n", "\n  ") + "\n")
	}
	for _, left := range s.LeftOut {
		what := "left out"
		if left.KeptPrevious {
			what = "its previous version stays"
		}
		fmt.Fprintf(&text, "%s: %s: %s\n", what, pass.RecordName(left), left.Reason)
	}
	for _, change := range s.Changes {
		text.WriteString(change.Diff)
	}
	return text.String()
}

// verdict says in one line what would be done about a service.
func verdict(s pass.ForeseenService) string {
	files := fmt.Sprintf("%d files", len(s.Changes))
	if len(s.Changes) == 1 {
		files = "1 file"
	}
	switch {
	case s.Hold != nil:
		return fmt.Sprintf("held until %s: nothing would be done", s.Hold.Until.Local().Format("2006-01-02 15:04:05 MST"))
	case s.Skipped != "":
		return s.Skipped
	case s.Refused != "" && s.Tested:
		return "its own test refuses the candidate: nothing would be changed"
	case s.Refused != "":
		return "nothing could be changed"
	case len(s.Changes) == 0 && s.Action == "":
		return "nothing would be changed"
	case s.Action == "":
		return files + " would be changed, nothing reloaded; its own test accepts the candidate"
	case len(s.Changes) == 0:
		return "no file would be changed, but it has not loaded what is there: " + s.Action
	}
	return files + " would be changed, then " + s.Action + "; its own test accepts the candidate"
}

func foreseenVolume(plan volumes.Plan) string {
	if plan.Err != nil {
		return fmt.Sprintf("\nvolume %d: nothing could be done: %v\n", plan.Volume.ID, plan.Err)
	}
	return fmt.Sprintf("\nvolume %d, %s: would %s\n", plan.Volume.ID, plan.Volume.HostPath, plan.Would)
}
