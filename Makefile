PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
NAME ?= level
SECONDS ?= 300
WORKERS ?= 2
RELEASE := .venv-release/bin
# Pins apply to the build environment too.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt

PYTHONS ?= 3.11 3.12 3.13 3.14
.PHONY: demo test nightly quick pages tables pictures charts lint types unit browser format docs data bench study paper fuzz oldest \
	release-check committed dist smoke installed pythons hashes clean

demo: .venv/core          ## the main job on an embedded, simulated survey
	@$(BIN)/itrust demo --report report.html --rows homes.csv

test: lint types unit     ## everything that a landing is checked by, in ten minutes

quick: .venv/test         ## what fits between two edits: all tests but the slow ones
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 -q -m "not slow and not nightly" tests src release website

lint: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/test
	$(BIN)/mypy

# One BLAS thread a worker; the package's own threads follow OMP_NUM_THREADS.
unit: .venv/test browser
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 -q -m "not nightly"

# Everything that is too long for every landing: all tests, damaged inputs, killed commands, the oldest versions.
nightly: lint types browser  ## all tests, those of `make test` and the long ones
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 -q --hypothesis-profile=nightly
	$(MAKE) fuzz SECONDS=60
	$(MAKE) oldest

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

# Of the real data sets that tests read, those that anybody may fetch; others are skipped, and counted.
data: .venv/core          ## fetch the public data sets, and print the folder to set ITRUST_DATA to
	@$(BIN)/python tests/fetch_data.py

# Runs every block of the pages; those of the real data sets want ITRUST_DATA.
pages: .venv/test         ## write what blocks print now into the pages that say something else
	OMP_NUM_THREADS=1 PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tests/doc_blocks.py $(PAGES)

# Nothing is computed: the tables come from the JSON files that studies have written.
tables: .venv/core        ## write what studies found into the pages that show it
	@$(BIN)/python studies/quote.py

# Those of the README, the home page, the guide and the reference; `make pages` draws those that pages make.
pictures: .venv/test      ## draw the pictures in docs/pictures again
	OMP_NUM_THREADS=1 $(BIN)/python website/pictures.py

# After a change of the pin of vl-convert-python (pyproject.toml, constraints.txt); LICENCES.txt is written by hand.
charts: .venv/core        ## the chart library that the package carries, made again
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[charts]'
	$(BIN)/python release/charts.py

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

# Packages that the study of reference alone compares with; relplot imports the two behind it.
COMPARED := betacal model-diagnostics momentchi2 netcal relplot deprecation seaborn uncertainty-calibration
STUDIES := $(filter-out kit housing compas people paper quote,$(basename $(notdir $(wildcard studies/*.py))))

study: .venv/test         ## a statistical study: make study NAME=level
	@test -n "$(filter $(NAME),$(STUDIES))" || \
		{ echo "there is no study '$(NAME)'; there are $(STUDIES)" >&2; exit 2; }
	@# AIF360 names much that its subset scan, which the study of power compares with, does not need.
	@if [ "$(NAME)" = power ]; then \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps aif360; \
	fi
	@# Nor does what others compute need all that their packages name.
	@if [ "$(NAME)" = reference ]; then \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $(COMPARED); \
	fi
	@OMP_NUM_THREADS=1 $(BIN)/python studies/$(NAME).py

fuzz: .venv/test          ## damaged inputs against every door for five minutes (SECONDS=60), then commands killed
	@OMP_NUM_THREADS=1 $(BIN)/python tests/fuzz/run.py --seconds $(SECONDS)
	@OMP_NUM_THREADS=1 $(BIN)/python tests/fuzz/kills.py

paper: .venv/test         ## every figure and table of the paper, and the page; QUICK=1 in minutes
	@OMP_NUM_THREADS=1 $(BIN)/python studies/paper.py

# pip would compile what it installs file by file, tests of other packages, too; this takes all cores.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
COMPILE := $(BIN)/python -m compileall -qq -j 0 -x '/tests?/' .venv/lib || true

.venv/core: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) -e .
	@$(COMPILE)
	@touch $@

.venv/docs: .venv/core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

.venv/test: .venv/core
	$(INSTALL) -e '.[test]'
	@# MCGrad names Ax, PyTorch and eighty more; what is tested of it needs LightGBM alone.
	$(INSTALL) --no-deps MCGrad
	@$(COMPILE)
	@touch $@

# What is not of a lower bound is as in constraints.txt. Left out, and their tests skipped with a reason: torch, of which one version
# is allowed; svy, MLflow and the makers of the site. pyreadstat wants a newer narwhals than the core does, so files come twice.
oldest:                   ## the tests with the oldest versions that are allowed
	@mkdir -p build
	awk -F== '{name = tolower($$1); gsub(/[_.]/, "-", name)} !seen[name]++' \
		constraints-oldest.txt constraints.txt >build/constraints-oldest.txt
	$(PYTHON) -m venv --clear .venv-oldest
	PIP_CONSTRAINT=$(CURDIR)/build/constraints-oldest.txt .venv-oldest/bin/python -m pip install \
		--quiet --disable-pip-version-check -e '.[dask,excel]' dask-expr duckdb fairlearn hypothesis lightgbm openpyxl \
		pandas patsy polars ppi-python probcal pytest pytest-xdist pyyaml selenium statsmodels
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check --no-deps MCGrad
	OMP_NUM_THREADS=1 .venv-oldest/bin/pytest -n $(WORKERS) -q tests
	PIP_CONSTRAINT= .venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check \
		pyreadstat==1.3.4 narwhals==2.10.1
	OMP_NUM_THREADS=1 .venv-oldest/bin/pytest -n $(WORKERS) -q tests/data tests/cli/test_formats.py tests/cli/test_columns.py

# From cheap to dear, all of them; release/check.py has the list. STEPS="dist smoke" runs some.
release-check:            ## everything between a commit and an upload
	@$(PYTHON) release/check.py $(STEPS)

# Files that nobody committed would not be in the package, or would be by mistake.
committed: hashes
	@test -z "$$(git status --porcelain)" || \
		{ git status --short; echo "commit these, or take them away, first" >&2; exit 1; }

# From a copy of what is committed, so that nothing else gets in.
dist: .venv-release/tools ## wheel and sdist of the last commit, into dist/
	rm -rf dist build/commit
	mkdir -p build/commit
	git archive HEAD | tar -x -C build/commit
	$(RELEASE)/python -m build --outdir dist build/commit
	$(RELEASE)/twine check --strict dist/*
	$(RELEASE)/python release/contents.py dist

smoke: dist               ## the wheel in an empty environment, with the hashes that users are given
	$(PYTHON) -m venv --clear .venv-smoke
	env -u PIP_CONSTRAINT .venv-smoke/bin/python -m pip install --quiet --disable-pip-version-check \
		--require-hashes --only-binary :all: -r requirements-release.txt
	.venv-smoke/bin/python -m pip install --quiet --disable-pip-version-check --no-deps dist/*.whl
	.venv-smoke/bin/python -m pip check
	rm -rf build/smoke
	mkdir -p build/smoke
	cd build/smoke && sh $(CURDIR)/tests/smoke.sh $(CURDIR)/.venv-smoke/bin

installed: dist           ## the fast tests and the README against the installed wheel, without the sources
	$(PYTHON) -m venv --clear .venv-installed
	.venv-installed/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls dist/*.whl)[test]"
	.venv-installed/bin/python -m pip install --quiet --disable-pip-version-check --no-deps MCGrad
	sh release/installed.sh .venv-installed build/installed $(WORKERS)

pythons: dist             ## the same on every Python that is here; says which are not
	sh release/pythons.sh "$(PYTHONS)" $(WORKERS)

# For all systems and all versions of Python that the package allows; no address is written down.
hashes: .venv-release/tools  ## requirements-release.txt: the core's dependencies with their hashes
	$(RELEASE)/uv pip compile --quiet --no-config --universal --python-version 3.11 \
		--generate-hashes --no-annotate --custom-compile-command 'make hashes' \
		--constraints constraints.txt --output-file requirements-release.txt pyproject.toml

.venv-release/tools: constraints.txt
	$(PYTHON) -m venv --clear .venv-release
	$(RELEASE)/python -m pip install --quiet --disable-pip-version-check build twine uv
	@touch $@

clean:
	rm -rf .venv .venv-oldest .venv-release .venv-smoke .venv-installed .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
