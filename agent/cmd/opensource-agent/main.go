// Command opensource-agent looks after the site of its host. Each command has a
// file of its own; the one that is meant without a name is run, a pass.
package main

import (
	"os"
	"runtime"
)

// version is set by the linker.
var version = "development"

func main() {
	// A pass mostly waits: for the manager, the disk, systemd. One processor
	// does, and spares it the threads that a second one would start.
	runtime.GOMAXPROCS(1)
	os.Exit(int(run(os.Args[1:], environment{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ(),
	})))
}
