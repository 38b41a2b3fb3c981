// Package api serves the manager's HTTP API below /api/v1: the check-in of
// agents and the inventory that operators describe. routes.go is its table of
// contents; every resource has a file of its own.
package api
