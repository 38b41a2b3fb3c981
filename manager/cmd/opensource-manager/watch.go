package main

import (
	"bytes"
	"io"
	"os"
	"time"
)

// watchInterval is how often what is watched is shown again.
const watchInterval = 2 * time.Second

// watch shows something again and again until the context ends: on a terminal
// always in the same place, elsewhere one after the other.
func (e *environmentOf) watch(show func() error) error {
	out := e.stdout
	defer func() { e.stdout, e.onOneLine = out, false }()
	e.onOneLine = true
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		var shown bytes.Buffer
		e.stdout = &shown
		if err := show(); err != nil {
			if e.Err() != nil {
				return nil // a query was cut off by Ctrl-C
			}
			return err
		}
		if _, err := out.Write(redrawn(out, shown.Bytes())); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-e.Done():
			return nil
		}
	}
}

// redrawn takes the place of what is on a terminal, without flickering.
func redrawn(out io.Writer, text []byte) []byte {
	if file, ok := out.(*os.File); !ok || !isTerminal(file) {
		return text
	}
	const home, clearLine, clearBelow = "\x1b[H", "\x1b[K", "\x1b[J" // console_codes(4)
	lines := bytes.ReplaceAll(text, []byte("\n"), []byte(clearLine+"\n"))
	return append(append([]byte(home), lines...), clearBelow...)
}
