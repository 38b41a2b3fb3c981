package apply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"opensource.internal/agent/render"
)

// Fault is what a service's own program has found wrong with its files: its
// verdict, as opposed to a test that could not be made.
type Fault struct {
	// Words are those of the program, in full, with the name of the live file
	// in the place of the candidate's.
	Words string
	// Verdict is the one line of them that ended the test.
	Verdict string
	// Places are where in the managed files the program says that the fault
	// is. It does not always say so.
	Places []Place
	// Elsewhere names the file with the fault if that is not a managed one,
	// such as a drop-in. There are no Places then.
	Elsewhere string
}

// Place is a fault in one line of a managed file.
type Place struct {
	File  string // the live file
	Lines []int  // from 1; the fault is in one of these
	Words string // what is wrong there, in one line
}

func (f *Fault) Error() string {
	if f.Elsewhere != "" {
		return "the fault is in " + f.Elsewhere + ", which is not managed by opensource-agent: correct or remove it\n" + f.Words
	}
	return f.Words
}

// Test asks the service's validator about a result, and says how long that
// took. Nothing is left behind, and no live file is touched.
func (e *Engine) Test(ctx context.Context, service Service, result render.Result) (time.Duration, error) {
	if e.Preview != nil {
		return e.Preview.test(ctx, service, result)
	}
	files, err := compare(result.Files)
	if err != nil {
		return 0, err
	}
	if err := files.stage(); err != nil {
		return 0, errors.Join(err, files.discard())
	}
	main := files.main()
	start := time.Now()
	err = service.test(ctx, main.candidate(), main.Path)
	return time.Since(start), errors.Join(err, files.discard())
}

// test is Test where the service's own folders are there.
func (s Service) test(ctx context.Context, candidate, live string) error {
	for _, path := range s.Writes {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
	}
	return s.Test(ctx, candidate, live)
}
