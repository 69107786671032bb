# Every target sets up what it needs: a virtual environment in .venv, and for the tests PostgreSQL, Redis and
# Keystone servers and a browser.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

BIN := .venv/bin
# Tests start hundreds of processes: none may have to compile all modules again.
export PYTHONDONTWRITEBYTECODE :=
# Many tests wait for processes of theirs: so two more at a time than there are cores.
TESTERS ?= $(shell cores=$$(getconf _NPROCESSORS_ONLN); echo $$(( cores < 3 ? cores + 2 : 4 )))
PYTEST = $(BIN)/python -m pytest --numprocesses $(TESTERS) --dist worksteal
STORMS := tests/real tests/attack
PYTHONS := tests/pythons
CONTAINERS := tests/containers
CLIENTS := tests/clients
OPENSTACK := tests/openstack
CUSTOMERS := tests/customers
UPGRADE := tests/upgrade
# Of the tests of the wire, those that are about what is stored, and how.
MARIADB := tests/on_mariadb
ON_MARIADB := $(MARIADB) tests/docs/test_documentation.py \
	tests/real/test_killing.py::test_another_worker_takes_over tests/contract tests/component/test_locks.py $(addprefix tests/wire/,\
	test_concurrency.py test_convergence_requests.py test_following.py test_groups.py test_heatclient.py test_listing.py \
	test_locks.py test_moving.py test_requests.py test_revisions.py test_rollouts.py test_snapshots.py test_trouble.py)
OPENSTACK_STORM := $(OPENSTACK)/storm
# What has a target of its own.
RINGS := $(STORMS) $(CLIENTS) $(PYTHONS) $(CONTAINERS) $(OPENSTACK) $(CUSTOMERS) $(MARIADB) $(UPGRADE)
KILLS ?= 20
PAUSES ?= 5
LOST ?= 20
EXAMPLES ?= 20000
REQUESTS ?= 100000
SEED ?= 1
SEEDS ?= 1000
FIRST ?= $(shell date +%s)0000
RING ?= ring
MINUTES ?= 1e9
CORPUS ?= ../shared/corpus
ONLY ?=
BUILDER ?= podman
IMAGE ?= localhost/homeostat
IMAGE_ARGS ?=
COSTS ?= $(CURDIR)/.pytest_cache/costs.jsonl

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: .venv/installed ## bring up a web tier on this machine, break it, watch it heal (about a minute)
	$(BIN)/python -m homeostat.cli.demo

.PHONY: demo-cluster
demo-cluster: .venv/installed ## shrink, grow and replace a balanced cluster while users ask, and lose no request (30 s)
	$(BIN)/python -m homeostat.cli.demo_cluster

.PHONY: demo-rollout
demo-rollout: .venv/installed ## roll out a good, a wrong and a corrected configuration to 30 servers of this machine (20 s)
	$(BIN)/python -m homeostat.cli.demo_rollout

.PHONY: test
test: servers ## run the tests, but for the heavy ones; ARGS="-k store" chooses, from all of them
	$(PYTEST) $(addprefix --ignore=,$(RINGS)) $(or $(ARGS),-m "not heavy")

.PHONY: test-heavy
test-heavy: servers ## run those that take most CPU time: the wire, Keystone, simulated worlds, the examples of the docs
	$(PYTEST) -m heavy $(addprefix --ignore=,$(RINGS)) $(ARGS)

.PHONY: test-fast
test-fast: .venv/installed ## run the tests of the pure packages, which need no server: under a minute
	$(BIN)/python -m pytest --numprocesses 2 -p no:anyio -p no:schemathesis $(addprefix tests/unit/,model planner templates resources clustering) $(ARGS)

.PHONY: test-costs
test-costs: servers ## run the tests of both, and print the CPU seconds of each file and fixture; ARGS=tests/wire chooses
	mkdir -p $(dir $(COSTS)) && rm -f $(COSTS)
	HOMEOSTAT_TEST_COSTS=$(COSTS) $(PYTEST) -p tests.costs $(addprefix --ignore=,$(RINGS)) $(ARGS) || true
	$(BIN)/python -m tests.costs $(COSTS)

.PHONY: test-mariadb
test-mariadb: .venv/installed ## run the tests of the store and of what touches it on MariaDB, and on a cluster of three (Galera)
	scripts/mariadb
	scripts/redis
	HOMEOSTAT_DATABASES=mariadb $(PYTEST) -m mariadb $(ON_MARIADB) $(ARGS)

.PHONY: test-upgrade
test-upgrade: .venv/installed ## make a state with the last release, and upgrade it in place, under traffic, and back
	scripts/postgresql
	scripts/mariadb
	scripts/released
	$(BIN)/python -m pytest --numprocesses 2 $(UPGRADE) $(ARGS)

.PHONY: storm
storm: servers ## run the slow tests: workers and servers are killed, users attack
	$(PYTEST) $(STORMS) $(ARGS)

.PHONY: test-pythons
test-pythons: .venv/installed ## install a release on the other Pythons of this machine, and run the tests of the pure packages there
	$(BIN)/python -m pytest --numprocesses 2 $(PYTHONS) $(ARGS)

.PHONY: test-containers
test-containers: .venv/installed ## build the container image on a Debian made here, and run what the compose file says in it
	scripts/postgresql
	scripts/buildah
	$(BIN)/python -m pytest $(CONTAINERS) $(ARGS)

.PHONY: test-clients
test-clients: servers ## run Horizon, Ansible and gophercloud against the service (about three minutes)
	scripts/horizon
	scripts/ansible
	scripts/gophercloud
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile $(CLIENTS) $(ARGS)

.PHONY: openstack
openstack: .venv/installed ## install a real OpenStack for the tests into .openstack (about ten minutes)
	scripts/openstack octavia barbican swift designate aodh gnocchi manila zaqar mistral ironic blazar vpnaas sfc taas

.PHONY: test-openstack
test-openstack: openstack ## run the tests against a real OpenStack, which comes up if it is not up; ARGS="-k server"
	$(BIN)/python -m pytest $(OPENSTACK) --ignore=$(OPENSTACK_STORM) $(ARGS)

.PHONY: test-customers
test-customers: openstack ## run what lives on Heat against the service in the catalogue of that OpenStack: the tests of Heat and Senlin, Magnum, Tacker
	scripts/tempest
	scripts/magnum
	scripts/tacker
	$(BIN)/python -m pytest $(CUSTOMERS) $(ARGS)

.PHONY: storm-openstack
storm-openstack: .venv/installed ## kill workers, lose answers and pause services on a real OpenStack; KILLS=500 LOST=500 PAUSES=100 SEED=7
	scripts/openstack octavia dhcp
	scripts/postgresql
	HOMEOSTAT_KILLS=$(KILLS) HOMEOSTAT_LOST=$(LOST) HOMEOSTAT_PAUSES=$(PAUSES) $(if $(filter file,$(origin SEED)),,HOMEOSTAT_SEED=$(SEED)) \
		$(BIN)/python -m pytest $(OPENSTACK_STORM) --capture=no $(ARGS)

.PHONY: servers
servers: .venv/installed
	scripts/postgresql
	scripts/redis
	scripts/haproxy
	scripts/graphviz
	scripts/man
	scripts/chromium
	scripts/axe
	scripts/keystone
	scripts/senlinclient

.PHONY: fuzz
fuzz: .venv/installed ## make many templates at random and see that each is compiled or refused; EXAMPLES=20000
	HOMEOSTAT_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest tests/unit/templates/test_template_fuzz.py --timeout=0 $(ARGS)

.PHONY: fuzz-requests
fuzz-requests: .venv/installed ## send many malformed requests and see that the service lives on; REQUESTS=100000 SEED=1
	HOMEOSTAT_REQUESTS=$(REQUESTS) HOMEOSTAT_SEED=$(SEED) \
		$(BIN)/python -m pytest tests/wire/test_malformed.py --timeout=0 --capture=no --show-capture=no $(ARGS)

.PHONY: seeds
seeds: .venv/installed ## play many simulated histories on all cores; SEEDS=1000 FIRST=20000000 MINUTES=30 RING=health ARGS=--regressions
	$(BIN)/python -m tests.simulation.playing --ring $(RING) --first $(FIRST) --seeds $(SEEDS) --minutes $(MINUTES) $(ARGS)

.PHONY: lint
lint: .venv/installed ## check style, sizes, types and the borders between packages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python scripts/sizes
	$(BIN)/python scripts/prose.py
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: bench
bench: .venv/installed ## measure the table of costs on all databases into bench/results (half an hour); ARGS=--quick tries it
	$(BIN)/python -m bench $(or $(ARGS),--write)
	$(BIN)/python -m bench.report

.PHONY: bar
bar: .venv/installed ## compare bytecodes and statements of a few operations with those of the last commit; ARGS=--write keeps new ones
	$(BIN)/python -W ignore -m bench.bar $(ARGS)

.PHONY: conformance
conformance: .venv/installed ## try the templates of a folder: CORPUS=../shared/corpus, ONLY=text in their paths
	$(BIN)/python -m conformance $(CORPUS) --only "$(ONLY)" $(ARGS)

.PHONY: docs
docs: .venv/installed ## write the generated reference pages and build the documentation into site/
	$(BIN)/python docs/generate.py
	$(BIN)/mkdocs build --strict

.PHONY: dist
dist: .venv/installed ## build the source distribution and the wheel of the newest commit into dist/, the same bytes each time
	scripts/dist

.PHONY: sbom
sbom: dist ## write the bill of materials of what was built (CycloneDX) beside it
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python scripts/sbom.py dist

.PHONY: release
release: .venv/installed ## commit a release and the begin of the version after it; VERSION=0.2.0
	$(BIN)/python scripts/release.py $(VERSION)

.PHONY: image
image: dist ## build the container image of what was built; BUILDER=docker, podman or buildah; IMAGE_ARGS="--build-arg BASE_IMAGE=…"
	$(BUILDER) build $(if $(filter docker,$(notdir $(BUILDER))),,--format docker) --build-arg VERSION=$$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml) --build-arg REVISION=$$(git rev-parse HEAD) \
		--tag $(IMAGE) --file packaging/container/Containerfile $(IMAGE_ARGS) .

.PHONY: screenshots
screenshots: servers ## take the pictures of the dashboard for the documentation, by its tests
	HOMEOSTAT_SCREENSHOTS=$(CURDIR)/docs/images $(BIN)/python -m pytest tests/wire -k test_dashboard $(ARGS)

.PHONY: lock
lock: ## write requirements.lock and packaging/release.lock for pyproject.toml; ARGS=--upgrade takes the newest releases
	scripts/lock $(ARGS)

.PHONY: clean
clean: ## remove everything that the other targets made
	[ ! -e .openstack ] || [ ! -x $(BIN)/python ] || $(BIN)/python -m tests.openstack.cloud --dir .openstack down --purge
	rm -rf .venv .keystone .openstack .senlinclient .horizon .ansible .gophercloud .tempest .magnum .tacker .released site build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests bench docs -name __pycache__ -prune -exec rm -rf {} +

# The stamp is younger than the files that say what to install, or it is installed again.
.venv/installed: pyproject.toml requirements.lock scripts/environment
	scripts/environment
	@touch $@
