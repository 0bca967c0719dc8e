# Needs python3 (3.11 or newer) and make, nothing else: what is used goes into a private .venv.
#   make scan ARGS="--duration 1m"        make test ARGS="-k wire"

PYTHON ?= python3
ARGS   ?=
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
RUN    := $(VENV)/.installed-all
DEV    := $(VENV)/.installed-dev

.DEFAULT_GOAL := help
.PHONY: help scan demo native ledger sanitize fuzz test lint type imports tests assets images locks sbom audit cluster cluster-down e2e e2e-v2 soak bench docs pictures chart goldens clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

scan: $(RUN) ## watch this host for 3 minutes and report what slows it down (ARGS="--duration 1m")
	@$(BIN)/reveal scan $(ARGS)

demo: $(RUN) ## inject a real, harmless fault on this host and show the finding (ARGS="--list")
	@$(BIN)/reveal demo $(ARGS)

native: $(DEV) ## compile the C parts of the collector again, after a change of them
	@$(BIN)/python collector/reveal_collector/native/build.py

ledger: $(DEV) ## compile the BPF programs of the lost-time ledger (clang-19 llvm-19 bpftool libbpf-dev)
	@$(BIN)/python collector/reveal_collector/native/bpf/build.py

# without what only some processors have: fuzzing takes the other way
sanitize: $(DEV) ## tests of the C parts under AddressSanitizer and UBSan
	@$(BIN)/python collector/reveal_collector/native/build.py $(CURDIR)/build/sanitized.so \
	  -O1 -g -U__SSE2__ -fsanitize=address,undefined -fno-sanitize-recover
	@REVEAL_NATIVE=$(CURDIR)/build/sanitized.so ASAN_OPTIONS=detect_leaks=0 \
	  LD_PRELOAD="$$($${CC:-cc} -print-file-name=libasan.so)" \
	  $(BIN)/pytest --capture=sys $(or $(ARGS),tests/unit/collector/native \
	  tests/unit/collector/shipping/test_native_encoder.py)

fuzz: $(DEV) ## fuzz the C scanner and the Python parsers (ARGS=600: seconds each)
	@tests/fuzz/run $(or $(ARGS),120)

test: $(DEV) ## all checks: style, types, layers of the packages, tests; prints the time of each
	@+MAKE="$(MAKE)" .ci/parts lint type imports tests

lint: $(DEV) ## ruff: rules and format; words that the project does not use
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python .ci/check_words.py
	@$(BIN)/python collector/reveal_collector/native/bpf/build.py --check

type: $(DEV) ## mypy, strict
	@$(BIN)/mypy

imports: $(DEV) ## import-linter: the layers of all packages
	@$(BIN)/lint-imports

WORKERS ?= 2
tests: $(DEV) ## pytest without the slow ones, in 2 processes (WORKERS=4; ARGS="-m slow" for the slow ones)
	@# the compiler's half minute comes once, before tests that wait for an analyzer
	-@$(BIN)/python -m reveal_analyzer.kernels.selftest
	@# the tests of a file share costly fixtures, so they run in the same process; the second pass
	@# runs what needs the machine for itself, also after a failure in the first one
	@$(if $(ARGS),$(BIN)/pytest $(ARGS),failed=0; \
	$(BIN)/pytest -m "not slow and not alone" -n $(WORKERS) --dist loadfile --durations=12 || failed=1; \
	$(BIN)/pytest -m "alone and not slow" || failed=1; \
	exit $$failed)

assets: $(DEV) ## build etcd, kube-apiserver, kubectl, helm from Go modules, once (minutes)
	@PYTHONPATH=e2e $(BIN)/python -m cluster build

images: $(DEV) ## build the three container images on Debian packages, without a registry (root; minutes)
	@PYTHONPATH=e2e $(BIN)/python -m images $(ARGS)

locks: $(DEV) ## pin what the images install, after a change of pyproject.toml (ARGS="--upgrade")
	@$(BIN)/python images/lock.py $(ARGS)

sbom: $(DEV) ## write an SBOM of each image and a table of licenses (ARGS="--output DIR")
	@$(BIN)/python images/sbom.py $(ARGS)

audit: $(DEV) ## check the locked packages for known vulnerabilities; passes where no advisories can be had
	@$(BIN)/python images/audit.py $(ARGS)

NODES ?= 3
VM    ?= 0
cluster: $(DEV) ## a real Kubernetes of 3 nodes on this machine, with our images (root; NODES=5, VM=1)
	@PYTHONPATH=e2e $(BIN)/python -m cluster nodes up --count $(NODES) --vms $(VM) $(ARGS)

cluster-down: $(DEV) ## take it down and leave nothing behind
	@PYTHONPATH=e2e $(BIN)/python -m cluster nodes down $(ARGS)

FOLDER ?= e2e
e2e: assets ## pytest against a real Kubernetes control plane (FOLDER=e2e/operator ARGS="-k rbac")
	@# as for `tests`: an analyzer that compiles is late
	-@$(BIN)/python -m reveal_analyzer.kernels.selftest
	@REVEAL_NODES=$(or $(REVEAL_NODES),required) $(BIN)/pytest $(FOLDER) --ignore=e2e/vm $(ARGS)

e2e-v2: assets ## pytest on a node with a kernel of its own, systemd and cgroup v2 alone (root, qemu; minutes)
	@$(BIN)/pytest e2e/vm $(ARGS)

MINUTES ?= 30
soak: cluster ## run healthy jobs on the nodes of `make cluster`: no findings, no growth (MINUTES=30)
	@PYTHONPATH=e2e:tests:bench $(BIN)/python -m soak --minutes $(MINUTES) $(ARGS)

# those that need neither a recording nor hours: bench/README.md has the others
BENCHES := analysis channel_tables collector failover footprint interference lateness ledger \
  node_history page parse profiles state stream table_cost table_mutations tools wire
bench: $(DEV) ## the measured figures that need no recording; an hour, on a quiet machine, as root
	@for name in $(BENCHES); do echo "== $$name"; $(BIN)/python bench/$$name.py || exit 1; done

docs: $(DEV) ## generate the pages of flags, metrics, hypotheses and privileges
	@$(BIN)/reveal catalog --markdown > docs/reference/metrics.md.new && mv docs/reference/metrics.md.new docs/reference/metrics.md
	@$(BIN)/reveal hypotheses --markdown > docs/reference/list.new && mv docs/reference/list.new docs/reference/hypotheses-list.md
	@$(BIN)/reveal hypotheses --schema > docs/reference/schema.new && mv docs/reference/schema.new docs/reference/hypotheses.schema.json
	@$(BIN)/python -m reveal_operator.manifests.privileges_page > docs/reference/new && mv docs/reference/new docs/reference/privileges.md
	@$(BIN)/python -m reveal_cli.flags_page > docs/reference/new && mv docs/reference/new docs/reference/cli.md

pictures: $(DEV) ## take the pictures of the documentation from a real recording (chromium)
	@PYTHONPATH=tests $(BIN)/python docs/pictures/make.py

chart: $(DEV) ## generate the parts of the chart that repeat crds/ and values.yaml
	@$(BIN)/python charts/generate.py

goldens: $(DEV) ## regenerate the golden files of hosts and manifests; `git diff` shows the changes
	@REVEAL_GOLDENS=write $(BIN)/pytest tests/integration/test_goldens.py tests/unit/operator/manifests/test_manifests_goldens.py \
	  tests/contract/test_crds_profiles.py tests/contract/test_crds_kubectl.py

clean: ## remove the private .venv and all caches
	@rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Reveal needs Python 3.11 or newer, and '$(PYTHON)' is" \
	    "$$($(PYTHON) --version 2>/dev/null || echo missing): install one, or name it with" \
	    "'make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)'" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments:" \
	    "install its venv module (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@echo "making a private environment in $(VENV)" >&2
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

# installed once, and again when the dependencies change
$(RUN): pyproject.toml | $(BIN)/python
	@echo "installing what reveal needs (once, a minute or two)" >&2
	@$(PIP) install --editable '.[all]'
	@touch $@

$(DEV): pyproject.toml | $(BIN)/python
	@echo "installing reveal and its development tools (once, a few minutes)" >&2
	@$(PIP) install --editable '.[dev]'
	@touch $@ $(RUN)
