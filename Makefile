# opensource-server: everything a developer does, by name. `make help` lists it.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh

VERSION := $(shell cat packaging/VERSION)
LDFLAGS := -s -w -X main.version=$(VERSION)
# gin's msgpack support is not used; leaving it out halves the manager's build.
TAGS := nomsgpack
MODULES := agent manager templates packaging/e2e
PACKAGES := $(addsuffix /...,$(addprefix ./,$(MODULES)))
TOOLS := build/tools
# What others have made of the files that the dashboard sends to browsers.
ASSETS := manager/internal/dashboard/assets/vendor/.made
SEQUENCES ?= 1000
# The manager's tests that depend on the database.
ON_POSTGRESQL := $(addprefix ./manager/,cmd/... internal/api/... internal/auth/... internal/dashboard/... internal/manifest/... internal/metrics/... internal/notify/... internal/server/... internal/snapshot/... internal/store/... internal/tasks/...)

.PHONY: run
run: deps-run build ## Start the manager with a demo site and a sandboxed agent; prints URL and sign-in.
	tools/demo

.PHONY: test
test: deps-test $(ASSETS) $(TOOLS)/gotestsum ## Run all tests near the code, with the race detector; the manager's on SQLite and on PostgreSQL.
	@mkdir -p build/screenshots
	SCREENSHOTS=$(CURDIR)/build/screenshots $(TOOLS)/gotestsum --format pkgname-and-test-fails --jsonfile build/test.json -- -race -tags $(TAGS) -timeout 15m work
	TEST_DATABASE=postgresql SCREENSHOTS=$(CURDIR)/build/screenshots $(TOOLS)/gotestsum --format pkgname-and-test-fails --jsonfile build/test-postgresql.json -- -race -tags $(TAGS) -timeout 15m $(ON_POSTGRESQL)

.PHONY: soak
soak: deps-test ## Drive the agent through SEQUENCES=1000 random sequences of changes, faults and edits.
	SOAK_SEQUENCES=$(SEQUENCES) SOAK_SEED=$${SOAK_SEED:-$$(date +%s)} go test ./agent/internal/soak -v -count 1 -timeout 0

.PHONY: fuzz
fuzz: deps-test ## Feed every fuzz target with new inputs for FUZZTIME=30s each.
	tools/fuzz

.PHONY: e2e
e2e: deps-e2e $(TOOLS)/gotestsum deb ## Install the packages on booted Debian machines and try the main job (needs root).
	@mkdir -p build/screenshots
	cd packaging/e2e && SCREENSHOTS=$(CURDIR)/build/screenshots ../../$(TOOLS)/gotestsum --format standard-verbose --jsonfile ../../build/e2e.json -- -tags e2e -timeout 40m -count 1 ./...

.PHONY: lint
lint: deps-lint $(ASSETS) $(TOOLS)/gofumpt $(TOOLS)/staticcheck $(TOOLS)/govulncheck ## Check format, code, known vulnerabilities, scripts, units and packaging.
	@unformatted=$$($(TOOLS)/gofumpt -l $(MODULES) | grep -v _templ.go) || true; \
		[ -z "$$unformatted" ] || { echo "not gofumpt'ed: $$unformatted" >&2; exit 1; }
	go vet -tags $(TAGS),e2e work
	$(TOOLS)/staticcheck -tags $(TAGS),e2e $(PACKAGES)
	@for module in $(MODULES); do (cd $$module && GOWORK=off go build -tags $(TAGS) ./...) || exit 1; done
	tools/vulncheck
	packaging/lint

.PHONY: bench
bench: deps-bench build ## Measure passes, rendering and check-ins; see docs/performance.md.
	tools/bench

.PHONY: build
build: $(ASSETS) ## Build both programs into build/.
	@mkdir -p build
	CGO_ENABLED=0 go build -trimpath -ldflags "$(LDFLAGS)" -o build/opensource-agent ./agent/cmd/opensource-agent
	CGO_ENABLED=1 go build -tags $(TAGS) -trimpath -ldflags "$(LDFLAGS)" -o build/opensource-manager ./manager/cmd/opensource-manager

.PHONY: deb
deb: deps-deb $(TOOLS)/nfpm ## Build the Debian packages into build/.
	packaging/build-deb

.PHONY: golden
golden: ## Rewrite the golden files and the shell completions; read the diff before you commit it.
	go test ./agent/render -update
	go test ./agent/internal/status -update
	go test ./agent/cmd/opensource-agent -run TestCompletions -update

.PHONY: clean
clean: ## Remove everything that was built or fetched: build/, the files of the pages and of npm.
	rm -rf build tools/assets/node_modules manager/internal/dashboard/testdata/vendor
	find manager/internal/dashboard/assets/vendor -mindepth 1 ! -name README.md -delete

.PHONY: help
help: ## List the targets.
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

.PHONY: assets
assets: $(ASSETS) ## Get the files of others that the dashboard sends to browsers.
$(ASSETS): tools/make-assets tools/assets/package.json tools/assets/package-lock.json
	tools/make-assets

# The packages of Debian that each target needs.
.PHONY: deps-run deps-test deps-deb deps-e2e deps-lint deps-bench
deps-run deps-test deps-deb deps-e2e deps-lint deps-bench: deps-%:
	@tools/install-deps $*

# Development tools have their own module, so that no program depends on them.
$(TOOLS)/%: tools/go.mod tools/go.sum
	@mkdir -p $(TOOLS)
	cd tools && GOWORK=off go build -o ../$(TOOLS)/ tool
	@touch $(TOOLS)/*
