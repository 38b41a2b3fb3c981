// Package dashboard serves the pages people look at: signing in and what
// every agent reported. Pages work without script; a small one refreshes the
// list in place. Nothing is loaded from any other host.
package dashboard

//go:generate go run github.com/a-h/templ/cmd/templ@v0.3.1118 generate
