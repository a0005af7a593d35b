# Waggle. `make help` lists the targets. They need only Go and make.

GO       ?= go
MODULES  := $(shell $(GO) list -m -f '{{.Dir}}')
# Modules outside of the workspace: no other module shall inherit their dependencies.
OUTSIDE  := $(CURDIR)/e2e/kube $(CURDIR)/e2e/containers $(CURDIR)/deploy/observability $(CURDIR)/deploy/release
# make supply builds the binaries anew: it runs if dependencies changed.
UNIT     := $(filter-out %/e2e %/deploy/supply %/e2e/lab,$(MODULES))
CACHE    := $(CURDIR)/.cache
RESULTS  := $(CACHE)/test
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
COMMIT   ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
# gRPC's tracing has pages of its own: their templates call methods by name, so that the linker would keep every method.
TAGS     := grpcnotrace
LDFLAGS  := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)
# For all go commands: without the paths of this folder its clones share the build cache, and with the same tags so do programs
# and tests.
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS) -trimpath -tags=$(TAGS))

# The race detector needs cgo, which Go switches off without a C compiler.
RACE     := $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)
# A process of the race detector sleeps for a second before it ends; each package is one.
export GORACE ?= atexit_sleep_ms=50
# repocheck reads the whole tree, which the cache of test results does not see: it forgets them when this value changes.
export WAGGLE_TREE := $(shell git ls-files -co --exclude-standard -z 2>/dev/null | xargs -0 sha256sum 2>/dev/null | sha256sum | cut -c1-16)
# The reference machine has two cores. Tests mostly wait, so that some packages of them at once keep it busy.
PARALLEL ?= 2
TESTS    ?= 4
TIMEOUT  ?= 20m
# Narrow a run: make test PKG=./eventlog/... RUN=TestAppend. Without PKG all modules are
# tested in one go, so that none waits for the slowest package of the one before, and the
# slowest packages begin: the last of them would keep one processor busy and the other not.
PKG      ?=
SLOW     := gateway internal/eventlog services/worker services/tools/service cmd/waggle cmd/waggle/doctor cmd/repocheck \
	services/task internal/command internal/bus services/pipeline services/session
# CI takes no result from the cache of test results, which does not see all that a test reads.
FRESH    := $(if $(CI),-count=1)
TESTFLAGS = -p $(TESTS) -timeout $(TIMEOUT) $(FRESH) $(if $(RUN),-run '$(RUN)')
# The NATS server of the tests. With the path of a program that is there, test binaries need not build it.
export WAGGLE_NATSD ?= $(CACHE)/bin/natsd
# Tests that a submission does not run: broad ones, and those with bounds on time and memory.
NIGHTLY  := -tags=$(TAGS),nightly

LINT_VERSION := v2.15.0
LINT     := $(CACHE)/bin/golangci-lint-$(LINT_VERSION)
VULN_VERSION := v1.9.0
VULN     := $(CACHE)/bin/govulncheck-$(VULN_VERSION)
TESTSUM  := $(CACHE)/bin/testsum
CHECK    := $(CACHE)/bin/check
MUTANTS  := $(CACHE)/bin/mutants

.DEFAULT_GOAL := help
# The fleet of docker-compose.yml. LOCAL=1 needs no image registry: base scratch, and a
# load balancer built from its sources (once, a few minutes); .env names these images for
# every later command.
COMPOSE  := $(shell docker compose version >/dev/null 2>&1 && echo docker compose || echo docker-compose)
ifdef LOCAL
BASE     ?= scratch
endif

.PHONY: up down logs observe backup restore images secrets compose-test images-check images-scan sbom vulnerabilities release release-test
.PHONY: helm helm-files helm-golden kube
.PHONY: site docs
.PHONY: help build run check test race changes supply test-all steady natsd mutants lint lint-changed fmt generate verify e2e packages typescript python console soak chaos attack growth speed profiles streams simulate bench clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

build: ## build bin/waggle
	@mkdir -p bin
	@cd cmd && GO='$(GO)' ../scripts/build.sh ../bin/waggle -ldflags '$(LDFLAGS)' ./waggle

run: build ## build and run everything in one process (chat with it: bin/waggle chat)
	./bin/waggle up

test: natsd $(TESTSUM) ## run all unit and integration tests
	@status=0; $(TESTSUM) -out $(RESULTS)/unit.json $(if $(PKG),-dirs '$(UNIT)') -- $(GO) test -json -vet=off $(TESTFLAGS) $(or $(PKG),$(SLOW:%=$(CURDIR)/%) $(UNIT:%=%/...)) || status=1; \
	GOWORK=off $(TESTSUM) -out $(RESULTS)/observability.json -dirs '$(CURDIR)/deploy/observability' -- $(GO) test -json $(FRESH) ./... || status=1; exit $$status # the second is a module of its own: see its doc.go

check: natsd $(CHECK) $(TESTSUM) $(LINT) ## test what changed: vet, lint and unit tests of its packages and of those that need them (SINCE=commit)
	@$(if $(RACE),,echo 'no C compiler found: testing WITHOUT the race detector')
	@$(CHECK) -lint $(LINT) -testsum $(TESTSUM) -results $(RESULTS) -cache $(CACHE)/check $(if $(SINCE),-base '$(SINCE)') -- $(RACE) $(TESTFLAGS)

race: natsd $(CHECK) $(TESTSUM) ## test what changed, and what imports it, with the race detector (SINCE=commit)
	@$(if $(RACE),,echo 'no C compiler found: testing WITHOUT the race detector')
	@$(CHECK) -steps test -near -budget 4m -testsum $(TESTSUM) -results $(RESULTS) -cache $(CACHE)/race -out $(RESULTS)/race.json $(if $(SINCE),-base '$(SINCE)') -- $(RACE) $(TESTFLAGS)

changes: $(CHECK) ## list the files of the change (SINCE=commit)
	@$(CHECK) -files $(if $(SINCE),-base '$(SINCE)')

supply: $(TESTSUM) ## check that the SBOM and docs/MODULES.md list what the binaries hold
	@$(TESTSUM) -out $(RESULTS)/supply.json -dirs '$(CURDIR)/deploy/supply' -- $(GO) test -json -count=1 ./...

lint-changed: $(CHECK) $(LINT) ## vet and lint what changed (SINCE=commit)
	@$(CHECK) -steps vet,lint -lint $(LINT) -cache $(CACHE)/check $(if $(SINCE),-base '$(SINCE)')

test-all: build natsd packages $(TESTSUM) ## run everything, with the race detector, in random order, three times; broad tests, bounds on time and memory, soak, benchmarks (about 3 hours)
	@scripts/nettools.sh
	@scripts/test-all.sh

N        ?= 10
steady: natsd $(TESTSUM) ## run make test N times beside two programs that keep two processors busy, and list each test that failed (N=10)
	@scripts/steady.sh $(N)

# Most of what Waggle promises is decided in these packages.
CENTRAL  := internal/eventlog internal/command services/ledger services/conversation services/teamwork services/assignment services/worker \
	gateway/stream gateway/agui/fold internal/quota internal/auth services/tools/service
SAMPLE   ?= 40
SEED     ?= 1
BUDGET   ?= 60m
mutants: natsd $(MUTANTS) ## count the small faults in central packages that their own tests notice (PKG=folders, SAMPLE=40, SEED=1, TO=folder; BEFORE=folder of earlier results fails if one is lost; BUDGET=60m stops, and a second run goes on)
	@$(MUTANTS) -out '$(or $(TO),$(CACHE)/mutants)' -sample $(SAMPLE) -seed $(SEED) -parallel $(TESTS) -budget $(BUDGET) $(if $(BEFORE),-compare '$(BEFORE)') $(or $(PKG),$(CENTRAL))

e2e: build natsd $(TESTSUM) ## run the tests that need processes: kill -9, two gateways, the README
	@scripts/nettools.sh
	@WAGGLE_E2E_BINARY=$(CURDIR)/bin/waggle $(TESTSUM) -out $(RESULTS)/e2e.json -dirs '$(CURDIR)/e2e' -- $(GO) test -json -count=1 -p $(PARALLEL) -timeout 20m $(if $(RUN),-run '$(RUN)') $(or $(PKG),./...)

# Where a page names packages of npm, those of the SDK are built here.
site: build packages $(TESTSUM) ## follow every page of docs/site: run its commands and programs, compare what they print (RUN=TestPages/start narrows)
	@npm run --silent build --prefix sdk/typescript
	@WAGGLE_E2E_BINARY=$(CURDIR)/bin/waggle $(TESTSUM) -out $(RESULTS)/site.json -dirs '$(CURDIR)/e2e/site' -- $(GO) test -json -tags=$(TAGS),site -count=1 -timeout 20m $(if $(RUN),-run '$(RUN)') .

docs: packages ## build the site of docs/site, and check its links, anchors and spelling
	@cd docs/site && npm run --silent build && npm run --silent check

# Needs Node 20 with npm, Debian's chromium, python3 and curl. Nothing of a package runs when it is installed.
# npm writes this file last.
node_modules/.package-lock.json: package-lock.json
	@npm ci --ignore-scripts --no-audit --no-fund --prefer-offline --loglevel=error

packages: node_modules/.package-lock.json ## install what the TypeScript code needs, if it is not there yet

typescript: build packages ## check the TypeScript SDK, the examples and the console: generated files, lint, size, packages, tests in Node and walks in Chromium (PART=static or test: one of both; PART=all: every test, with those of the night)
	@status=0; for dir in sdk/typescript console; do \
		(cd $$dir && WAGGLE_E2E_BINARY=$(CURDIR)/bin/waggle WAGGLE_TEST_RESULTS=$(RESULTS)/$${dir##*/}.json NO_COLOR=1 npm run --silent $(or $(PART:all=test:all),check)) || status=1; \
	done; exit $$status

# The Python of Debian, which has the packages. ruff and pyright are npm packages.
PYTHON   ?= /usr/bin/python3
sdk/python/node_modules/.package-lock.json: sdk/python/package-lock.json
	@cd sdk/python && npm ci --ignore-scripts --no-audit --no-fund --prefer-offline --loglevel=error

python: build sdk/python/node_modules/.package-lock.json ## check the Python SDK: format, lint, types, packages, README, tests against bin/waggle (PART=static or test: one of both; RUN narrows)
	@PYTHON='$(PYTHON)' scripts/python.sh
	@cd sdk/python && if [ '$(PART)' != test ]; then npm run --silent lint && npm run --silent types; fi
	@if [ '$(PART)' != static ]; then cd sdk/python && WAGGLE_E2E_BINARY=$(CURDIR)/bin/waggle WAGGLE_TEST_RESULTS=$(RESULTS)/python.json \
		PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=src:tests $(PYTHON) -m pytest -q -p no:cacheprovider $(if $(RUN),-k '$(RUN)'); fi

console: packages ## build the console's files, which the binary embeds and git keeps: console/dist
	@cd console && npm run --silent build

KILLS    ?= 1000
soak: build ## ten thousand broken lines while processes are killed, a thousand gateways killed below streams of AG-UI (about 25 minutes; KILLS=1000, RUN narrows)
	cd e2e && WAGGLE_E2E_BINARY=$(CURDIR)/bin/waggle $(GO) test $(NIGHTLY) -count=1 -timeout 90m -v -run '$(or $(RUN),TestEveryReconnectIsExact|TestAGUIStreamsSurviveKills)' . -reconnects 10000 -gateway-kills $(KILLS)

chaos: build ## break a fleet in every way while clients work, 10,000 sockets, a herd (root for networks; about 25 minutes; FAULTS=regexp narrows)
	@scripts/nettools.sh
	cd e2e && WAGGLE_E2E_BINARY=$(CURDIR)/bin/waggle $(GO) test $(NIGHTLY) -count=1 -timeout 60m -v $(if $(RUN),-run '$(RUN)') ./chaos -matrix $(if $(FAULTS),-faults '$(FAULTS)') -sockets 10000 -herd 5000

attack: build ## 10,000 sockets without credentials, 5,000 bad logins a second and 100 slow readers beside users who chat (about 3 minutes)
	cd e2e/lab && WAGGLE_E2E_BINARY=$(CURDIR)/bin/waggle $(GO) test -count=1 -timeout 20m -v ./attack -sockets 10000 -logins 5000 -readers 100 -length 60s -bounds

# $(or) would take the commas for its own.
SESSIONS ?= 1000,10000,100000
EVENTS   ?= 1000,10000,100000
AGENTS   ?= 10,1000,10000,100000
TEAMS    ?= 10,50,500
CHATS    ?= 7m
PACES    ?= 200,1000
QUIET    ?= 30s
USERS    ?= 4,8,16
growth: build ## write docs/GROWTH.md: what sessions, long logs, agents, teams and busy chats cost (SESSIONS=1000,10000,100000, EVENTS=, AGENTS=, TEAMS=, CHATS=7m, PACES=200,1000, REMARK=text; about 30 minutes)
	cd e2e/lab && WAGGLE_E2E_BINARY=$(CURDIR)/bin/waggle $(GO) test -count=1 -timeout 3h -v -run 'TestAgents|TestChats|TestPartitions|TestSessions|TestLongSessions|TestTeams' ./growth -sessions $(SESSIONS) -events $(EVENTS) -agents $(AGENTS) -teams $(TEAMS) \
		-length $(CHATS) -paces $(PACES) -quiet $(QUIET) -repeat 25 -page $(CURDIR)/docs/GROWTH.md -remark '$(REMARK)' \
		-command 'make growth SESSIONS=$(SESSIONS) EVENTS=$(EVENTS) AGENTS=$(AGENTS) TEAMS=$(TEAMS) CHATS=$(CHATS) PACES=$(PACES) QUIET=$(QUIET)'

ROUNDS   ?= 5
speed: ## write docs/SPEED.md: what Waggle costs beside bare peers (ROUNDS=5; 10 minutes on a machine that does nothing else)
	cd e2e/lab && $(GO) run ./speed -root $(CURDIR) -rounds $(ROUNDS) -page $(CURDIR)/docs/SPEED.md

profiles: ## write docs/PROFILES.md: which parts the processor time of the busiest paths goes to (BEFORE=folder of an earlier checkout, to compare with; 5 minutes on a machine that does nothing else)
	cd e2e/lab && $(GO) run ./profiles -root $(CURDIR) -before '$(abspath $(BEFORE))' -page $(CURDIR)/docs/PROFILES.md

simulate: build ## measure what an answer costs each part, and compare what the simulation predicts with a real run (USERS=4,8,16; 5 minutes on a machine that does nothing else)
	cd e2e/lab && WAGGLE_E2E_BINARY=$(CURDIR)/bin/waggle $(GO) test -count=1 -timeout 30m -v -run 'TestParts|TestPrediction' ./growth -talkers 16 -shorts 60 -longs 3 -pieces 200 -quiet 3s -length 8s -users $(USERS) -bounds
	cd e2e/lab && WAGGLE_E2E_BINARY=$(CURDIR)/bin/waggle $(GO) test -count=1 -timeout 30m -v -run TestParts ./growth -copies 3 -talkers 16 -shorts 60 -longs 3 -pieces 200 -quiet 3s

streams: ## count what streams cost: 10,000 idle ones, 1,000 viewers beside a stalled one, frames beside those of sockets (1 minute on a machine that does nothing else)
	cd gateway && $(GO) test $(NIGHTLY) -count=1 -v -run 'TestIdleStreamsTakeLittleMemory|TestAStalledViewerHarmsNoOther' -bench FramesOfStreams -benchtime 3x . -idle 10000 -viewers 1000 -sinks 100 -frames 1000

bench: ## run the benchmarks of all modules (BENCH=regexp narrows)
	@scripts/bench.sh '$(or $(BENCH),.)' $(MODULES)

# One run for the workspace: a run for each module would read the packages that it shares with others anew.
lint: $(LINT) ## run golangci-lint on every module
	@status=0; $(LINT) run --config .golangci.yml --concurrency $(PARALLEL) $(MODULES:$(CURDIR)/%=./%/...) || status=1; \
	for dir in $(OUTSIDE); do \
		echo "lint $${dir##*/}"; (cd $$dir && GOWORK=off $(LINT) run --config $(CURDIR)/.golangci.yml --concurrency $(PARALLEL) ./...) || status=1; \
	done; $(LINT) run --config .golangci.yml ./scripts/testsum/main.go || status=1; exit $$status

fmt: $(LINT) ## format all Go code with gofumpt
	@for dir in $(MODULES) $(OUTSIDE); do (cd $$dir && $(LINT) fmt --config $(CURDIR)/.golangci.yml ./...) || exit 1; done

# The documents of others hold the schemas: these come first. e2e adds its tests to pages of others, and docs/site shows these pages.
GENERATE := $(filter %/proto-schemas,$(UNIT)) $(filter-out %/proto-schemas %/docs/site,$(UNIT)) $(filter %/deploy/supply %/e2e %/e2e/lab,$(MODULES)) \
	$(filter %/docs/site,$(UNIT))

generate: ## regenerate everything that is generated
	@for dir in $(GENERATE); do (cd $$dir && $(GO) generate ./...) || exit 1; done
	@scripts/helm-files.sh

verify: ## check that generated files are current and that each module builds alone (PART=generated or alone: one of both)
	@for part in $(or $(PART),generated alone); do scripts/verify.sh $$part $(MODULES) || exit 1; done

images: ## build the images waggle and waggle-nats (BASE=scratch, TAG=dev; LOCAL=1 without a registry)
	@BASE=$(BASE) TAG=$(or $(TAG),dev) scripts/images.sh waggle nats $(if $(LOCAL),caddy)

images-check: ## build the binaries of the images twice: the bytes have to be the same
	@scripts/images.sh check

sbom: ## write a CycloneDX SBOM of each binary of the images: bin/image/waggle.cdx.json
	@scripts/images.sh sbom bin/image

release: ## make every file of a release in dist/, and publish nothing (CHECK=1 makes it twice, compares the bytes, and installs and runs each file; KEY=file signs)
	@KEY='$(KEY)' PYTHON='$(PYTHON)' scripts/release.sh
	@$(if $(CHECK),PYTHON='$(PYTHON)' scripts/release-check.sh)

release-test: $(TESTSUM) ## test the tools of releases, and lint the workflows
	@GOWORK=off $(TESTSUM) -out $(RESULTS)/release.json -dirs '$(CURDIR)/deploy/release' -- $(GO) test -json $(FRESH) ./...
	@cd deploy/release && GOWORK=off GOFLAGS= $(GO) tool actionlint -shellcheck= -pyflakes= ../../.github/workflows/*.yml

vulnerabilities: $(VULN) ## look for known vulnerabilities in what the binaries call (DB=file:///folder for a local database)
	@for dir in $(MODULES); do \
		echo "govulncheck $${dir##*/}"; (cd $$dir && $(VULN) $(if $(DB),-db '$(DB)') ./...) || exit 1; \
	done

images-scan: $(VULN) ## look for known vulnerabilities in the programs of the images (DB=file:///folder for a local database)
	@scripts/images.sh binaries $(CACHE)/scan
	@for program in waggle nats-server; do echo "govulncheck $$program"; $(VULN) $(if $(DB),-db '$(DB)') -mode=binary $(CACHE)/scan/$$program || exit 1; done

secrets: ## make the keys of the fleet that ./secrets does not have
	@test -x .cache/image/waggle || $(MAKE) --no-print-directory images
	@scripts/secrets.sh .cache/image/waggle

up: images secrets ## start the fleet and wait until it is ready: NATS cluster, services, two gateways, load balancer on 127.0.0.1:9000
	@$(if $(LOCAL),scripts/local.sh)
	$(COMPOSE) up -d
	@.cache/image/waggle healthcheck --addr "$$($(COMPOSE) port lb 9000)" --wait 10m

down: ## stop the fleet; its data stays (docker volume ls)
	$(COMPOSE) --profile observability --profile grafana down --remove-orphans

# It names services: "up" without names would take replicas away that --scale has added.
observe: ## start Prometheus and the collector of traces beside the fleet, and Grafana (LOCAL=1: without it)
	@$(if $(LOCAL),BASE=$(BASE) scripts/images.sh prometheus otel && scripts/local.sh)
	$(COMPOSE) --profile observability up -d prometheus otel $$(grep -qs '^WAGGLE_GRAFANA_PROFILE=grafana$$' .env || echo grafana)

backup: ## back the running fleet up (TO=folder; default: a new one in ./backups)
	@COMPOSE='$(COMPOSE)' scripts/backup.sh save $(TO)

restore: ## put a backup into a fleet that has no data yet, and start it (FROM=folder)
	@COMPOSE='$(COMPOSE)' scripts/backup.sh restore '$(FROM)'
	@$(MAKE) --no-print-directory up

logs: ## follow what the fleet says (SERVICE=gateway narrows)
	$(COMPOSE) logs -f --tail=100 $(SERVICE)

# Where docker has no Compose of its own, one is built beside Debian's: both are tested.
compose-test: ## run the fleet in containers; kill each of them, freeze and cut off NATS servers (installs Debian's engine if none runs)
	@scripts/engine.sh
	@BASE=scratch scripts/images.sh waggle nats caddy prometheus otel $(if $(filter docker-compose,$(COMPOSE)),compose)
	cd e2e && $(if $(filter docker-compose,$(COMPOSE)),DOCKER_CONFIG=$(CACHE)/docker) WAGGLE_E2E_BINARY=$(CACHE)/image/waggle \
		$(GO) test -tags compose -count=1 -timeout 40m -v $(if $(RUN),-run '$(RUN)') ./compose
	cd e2e/containers && WAGGLE_E2E_BINARY=$(CACHE)/image/waggle GOWORK=off $(GO) test -count=1 -timeout 20m -v $(if $(RUN),-run '$(RUN)') .

# Without vet, which would read the sources of all of Kubernetes' types a second time; make
# lint does it.
helm: build $(TESTSUM) ## check the Helm chart: lint, golden files, strict types, what every pod has to be
	@GOWORK=off $(TESTSUM) -out $(RESULTS)/helm.json -dirs '$(CURDIR)/e2e/kube' -- $(GO) test -json -count=1 -vet=off -timeout $(TIMEOUT) ./chart

helm-files: ## copy into the Helm chart what it shows and others own
	@scripts/helm-files.sh

helm-golden: helm-files build ## write the golden files of the Helm chart
	cd e2e/kube && GOWORK=off $(GO) test -count=1 ./chart -update

kube: build ## apply the Helm chart to a real control plane (builds it once, about 25 minutes)
	cd e2e/kube && GOWORK=off $(GO) test -count=1 -timeout 2h -v ./plane

clean: ## remove what the build made (not the data of a running server)
	rm -rf bin $(CACHE)

$(TESTSUM): scripts/testsum/main.go
	@mkdir -p $(@D)
	@$(GO) build -o $@ $<

natsd: ## build the NATS server of the tests
	@mkdir -p $(CACHE)/bin
	@$(GO) build -o $(CACHE)/bin/natsd ./internal/bus/bustest/natsd

$(CHECK): $(wildcard cmd/repocheck/check/*.go)
	@mkdir -p $(@D)
	@cd cmd && $(GO) build -o $@ ./repocheck/check

$(MUTANTS): $(wildcard cmd/repocheck/mutants/*.go)
	@mkdir -p $(@D)
	@cd cmd && $(GO) build -o $@ ./repocheck/mutants

$(LINT):
	@mkdir -p $(@D)
	@echo 'building golangci-lint $(LINT_VERSION) from the module registry (once, about 90 s)'
	@GOFLAGS= GOBIN=$(@D) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	@mv $(@D)/golangci-lint $@

$(VULN):
	@mkdir -p $(@D)
	@GOFLAGS= GOBIN=$(@D) $(GO) install golang.org/x/vuln/cmd/govulncheck@$(VULN_VERSION)
	@mv $(@D)/govulncheck $@
