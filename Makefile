# HookViz in two commands: `make run` and `make test`.
PORT ?= 8501
PYTHON ?= python3
BIN := .venv/bin
NPM := PATH="$(CURDIR)/$(BIN):$$PATH" npm --silent
WORKERS ?= 2
TIMES ?= 20
# Each worker has a server and a browser of its own; tests/running_order.py deals the tests out.
PYTEST := $(BIN)/python -m pytest -n $(WORKERS)

.PHONY: run test test-all sweep flakes durations mutants words lessons check lint types javascript format bench site load fuzz siege networks pictures train lock help clean
.DEFAULT_GOAL := help

help: ## list what make can do
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

run: .venv/app ## start the app on http://localhost:8501 (PORT=8600 for another port)
	$(BIN)/streamlit run app.py --server.port $(PORT)

test: .venv/dev ## show that each part works, in six minutes (WORKERS=4 on four cores)
	$(PYTEST) -m "not rest and not sweep"

test-all: .venv/dev ## run the rest of the tests that are run for every change
	$(PYTEST) -m "rest and not sweep"

sweep: .venv/dev ## run all with all: every lens and script on every network, by night
	EVERY_WAY=1 $(PYTEST) --maxfail=50

flakes: .venv/dev ## run the browser's tests twenty times over with three workers on two cores (TIMES=)
	for turn in $$(seq $(TIMES)); do \
	  echo "turn $$turn of $(TIMES)"; \
	  taskset -c 0,1 $(BIN)/python -m pytest -n 3 -m "browser and not sweep" || failed=1; \
	done; test -z "$$failed"

durations: ## keep what tests took, for what is run when, and first
	rm -f out/durations.json
	$(MAKE) test test-all
	$(BIN)/python -m tests.running_order

mutants: .venv/dev ## break the code in 300 places, one at a time, and see which tests notice
	$(BIN)/python -m scripts.mutants

words: .venv/dev ## count words that decode nothing, room by room; the counts may fall and not rise
	$(BIN)/python -m scripts.words

lessons: .venv/dev ## go through every lesson in every language and size, by pointer and by keyboard
	EVERY_WAY=1 $(PYTEST) tests/e2e/test_lessons.py -k beginning_to_end

check: lint types javascript ## format, lint, types, architecture (make -j2 check for both cores)

lint: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/python -m scripts.words --check

types: .venv/dev
	$(BIN)/mypy

javascript: .venv/dev # no build: the app runs what is checked here
	$(NPM) test
	@if $(NPM) install --prefer-offline || test -x node_modules/.bin/tsc; then $(NPM) run lint && $(NPM) run types; \
	else echo "NOT CHECKED: npm can't fetch Biome and TypeScript, which look at the JavaScript"; \
	  test -z "$$HOOKVIZ_REQUIRE_NPM"; fi

format: .venv/dev ## put the code into shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(NPM) install --prefer-offline && $(NPM) run format

site: .venv/dev ## build the documentation as a site into out/site, in both languages
	$(BIN)/python -W ignore -m scripts.docs_site

bench: .venv/dev .venv/peers ## measure speed beside peers and print the table
	PYTHONPATH=.venv/peers/packages $(BIN)/python -m scripts.bench

load: .venv/dev ## let classes of 1 to 300 work on one server at once, and see how many it bears
	$(BIN)/python -m scripts.load 1 10 40 100
	$(BIN)/python -m scripts.load 300 --model ShapesNet
	$(BIN)/python -m scripts.load 40 --model ShapesNet --pictures 5
	$(BIN)/python -m scripts.load --bear --model ShapesNet
	$(BIN)/python -m scripts.class_load 10 40

fuzz: .venv/dev ## hunt for bytes that break the image reader
	$(BIN)/python -m scripts.fuzz
	$(BIN)/python -m scripts.fuzz_wall

siege: .venv/dev ## hold a server of 4 GB against ten hostile visitors, beside thirty pupils
	$(BIN)/python -m scripts.siege

networks: .venv/dev ## hold 2,000 random networks against plain hooks
	$(BIN)/python -W ignore -m scripts.random_networks

lock: .venv/dev ## pin what the image installs, with hashes
	{ grep '^#' requirements.lock | head -6; { grep -vE '^torch' requirements.txt; printf '%s\n' filelock fsspec jinja2 networkx setuptools sympy typing-extensions; } | $(BIN)/uv pip compile - -q --generate-hashes --no-header --python-version 3.11 --python-platform x86_64-manylinux_2_34; } > .lock && mv .lock requirements.lock

pictures: .venv/dev ## make the pictures of README.md and docs from the real app
	$(BIN)/python -m scripts.gallery
	$(BIN)/python -m scripts.eye_filter squeezenet docs/pictures/eye-filter.jpg
	$(BIN)/python -m scripts.pictures
	$(BIN)/python -m scripts.moving_picture

train: .venv/dev ## train the bundled models again (over an hour on a CPU)
	$(BIN)/python -m scripts.train_bundled
	$(BIN)/python -m scripts.train_shapesvit

clean: ## remove the environment and everything made
	rm -rf .venv node_modules dist build .pytest_cache .mypy_cache .ruff_cache

# Each stamp is newer than its requirements once they are installed, so a second call is instant.
.venv/app: requirements.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

.venv/dev: requirements-dev.txt .venv/app
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -r requirements-dev.txt
	@touch $@

.venv/peers: requirements-peers.txt .venv/app
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $@/packages -r requirements-peers.txt
	@touch $@
