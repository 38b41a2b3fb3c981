// Command opensource-manager describes sites, publishes their configuration to
// the agents, and shows what every agent made of it.
package main

import "os"

func main() {
	os.Exit(run(os.Args[1:], environment(os.Environ()), os.Stdin, os.Stdout, os.Stderr))
}
