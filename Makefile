PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
NAME ?= level
SECONDS ?= 300
# Pins apply to the build environment too.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt

.PHONY: demo test quick pages pictures lint types unit browser format docs bench study paper fuzz oldest clean

demo: .venv/core          ## the main job on an embedded, simulated survey
	@$(BIN)/itrust demo --report report.html --rows homes.csv

test: lint types unit     ## everything CI checks

quick: .venv/test         ## what fits between two edits: all tests but the slow ones
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 -q -m "not slow" tests src website

lint: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/test
	$(BIN)/mypy

# One BLAS thread a worker; the package's own threads follow OMP_NUM_THREADS.
unit: .venv/test browser
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 -q

# Debian's Chromium for the tests of the page. Where it cannot be installed, those tests fail and say so
# (ITRUST_NO_BROWSER=1 goes without).
browser:                  ## install Chromium for the tests, where that is allowed
	@if [ "$$ITRUST_NO_BROWSER" = 1 ] || { [ -x /usr/bin/chromium ] && [ -x /usr/bin/chromedriver ]; }; then \
		exit 0; \
	fi; \
	if [ "$$(id -u)" = 0 ]; then as=; elif sudo -n true 2>/dev/null; then as="sudo -n"; else \
		echo "chromium is missing and may not be installed from here" >&2; exit 0; \
	fi; \
	{ $$as apt-get update -q && $$as env DEBIAN_FRONTEND=noninteractive apt-get install -q -y \
		--no-install-recommends chromium chromium-driver; } >/dev/null \
		|| echo "chromium could not be installed" >&2

format: .venv/test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Runs every block of the pages; those of the real data sets want ITRUST_DATA.
pages: .venv/test         ## write what blocks print now into the pages that say something else
	OMP_NUM_THREADS=1 PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tests/doc_blocks.py $(PAGES)

# Those of the README, the home page, the guide and the reference; `make pages` draws those that pages make.
pictures: .venv/test      ## draw the pictures in docs/pictures again
	OMP_NUM_THREADS=1 $(BIN)/python website/pictures.py

# Material's note on a future MkDocs is for its authors' readers, not for ours.
docs: .venv/docs          ## the site, into build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: .venv/test         ## ratios against a plain implementation, peak memory, growth
	@$(BIN)/python benchmarks/tiles.py
	@$(BIN)/python benchmarks/rows.py
	@$(BIN)/python benchmarks/adaptive.py
	@$(BIN)/python benchmarks/bias.py
	@$(BIN)/python benchmarks/recalibration.py
	@$(BIN)/python benchmarks/audit.py

STUDIES := $(filter-out kit housing compas people paper,$(basename $(notdir $(wildcard studies/*.py))))

study: .venv/test         ## a statistical study: make study NAME=level
	@test -n "$(filter $(NAME),$(STUDIES))" || \
		{ echo "there is no study '$(NAME)'; there are $(STUDIES)" >&2; exit 2; }
	@# AIF360 names much that its subset scan, which the study of power compares with, does not need.
	@if [ "$(NAME)" = power ]; then \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps aif360; \
	fi
	@OMP_NUM_THREADS=1 $(BIN)/python studies/$(NAME).py

fuzz: .venv/test          ## damaged inputs against every door for five minutes (SECONDS=60), then commands killed
	@OMP_NUM_THREADS=1 $(BIN)/python tests/fuzz/run.py --seconds $(SECONDS)
	@OMP_NUM_THREADS=1 $(BIN)/python tests/fuzz/kills.py

paper: .venv/test         ## every figure and table of the paper, and the page; QUICK=1 in minutes
	@OMP_NUM_THREADS=1 $(BIN)/python studies/paper.py

.venv/core: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

.venv/docs: .venv/core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

.venv/test: .venv/core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@# MCGrad names Ax, PyTorch and eighty more; what is tested of it needs LightGBM alone.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps MCGrad
	@touch $@

# pyreadstat wants a newer narwhals than the package does: its tests are skipped here.
oldest:                   ## the tests with the oldest versions that are allowed
	$(PYTHON) -m venv .venv-oldest
	PIP_CONSTRAINT=$(CURDIR)/constraints-oldest.txt .venv-oldest/bin/python -m pip install --quiet \
		-e . distributed duckdb fastexcel hypothesis openpyxl pandas polars pytest \
		pytest-xdist selenium
	OMP_NUM_THREADS=1 .venv-oldest/bin/pytest -n 2 -q tests

clean:
	rm -rf .venv .venv-oldest .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
