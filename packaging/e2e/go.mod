module opensource.internal/e2e

go 1.26.0

require (
	golang.org/x/sys v0.50.0
	opensource.internal/agent v0.0.0
)

replace (
	opensource.internal/agent => ../../agent
	opensource.internal/templates => ../../templates
)
