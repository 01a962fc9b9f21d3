# make setup | check | test | test-browser | test-ray | test-torch-min | reproduce | docs | figures | release-check | benchmark | benchmark-training | benchmark-store | benchmark-scaling | benchmark-executors | clean
# Every target installs what it needs into .venv, once: again only when pyproject.toml or constraints.txt change.

PYTHON ?= python3
BIN := .venv/bin
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: setup lint check test test-browser test-ray test-torch-min reproduce docs figures release-check benchmark benchmark-training benchmark-store benchmark-scaling benchmark-executors clean

setup: .venv/.installed

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed")'
	$(PYTHON) -m venv .venv

.venv/.installed: pyproject.toml constraints.txt | .venv/bin/python
	@echo "installing into .venv (once, a minute or two) ..."
	$(INSTALL) -e ".[bench,dev]"
	@touch $@

.venv/.installed-docs: .venv/.installed
	$(INSTALL) -e ".[docs]"
	@touch $@

.venv/.installed-ray: .venv/.installed
	$(INSTALL) -e ".[ray]"
	@touch $@

lint: .venv/.installed-ray
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# An answer in a minute: format, lint, types, contracts, doctests and the fast tests.
FAST = src tests/functional/test_laws.py tests/functional/test_signature.py tests/functional/test_monomials.py \
	tests/nn/test_action_attention.py tests/tasks/test_task.py tests/tasks/test_names.py \
	tests/tasks/composition/test_splits.py tests/tasks/composition/test_laws.py tests/tasks/composition/test_tables.py \
	tests/training/test_spec.py tests/training/test_sweep.py tests/training/test_options.py \
	tests/report/test_tables.py tests/report/test_statistics.py tests/runner/test_store.py

check: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal $(FAST)

# One thread for each worker of pytest: torch's own threads would fight for the same cores.
test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal -rfEs

# The explorer in a headless Chromium: Debian's, or any that is installed or named by CHROMIUM. A part of `make test`, too.
test-browser: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m browser -rfEs tests/explorer

# Kills workers, nodes and drivers of a Ray cluster with two nodes on this machine: a few minutes.
test-ray: .venv/.installed-ray
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m ray tests/runner/test_ray.py

# The layers with the lowest torch that pyproject.toml allows, in an environment of its own (several gigabytes).
TORCH_MIN = $(shell sed -n 's/.*"torch>=\([0-9.]*\)".*/\1/p' pyproject.toml)

.venv-torch-min/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-torch-min
	grep -vE '^(torch|sympy|setuptools)==' constraints.txt > .venv-torch-min/constraints.txt
	.venv-torch-min/bin/python -m pip install --quiet --disable-pip-version-check -c .venv-torch-min/constraints.txt \
		"torch==$(TORCH_MIN)" numpy einops jaxtyping safetensors msgspec polars pytest pytest-xdist hypothesis beartype
	@touch $@

test-torch-min: .venv-torch-min/.installed
	PYTHONPATH=$(CURDIR)/src OMP_NUM_THREADS=1 .venv-torch-min/bin/python -m pytest -n auto --dist worksteal \
		src/tpr_attention/functional src/tpr_attention/nn tests/functional tests/nn tests/models tests/tasks

# The paper's experiments: trainings into runs/, the report into report/. Again, it trains only what is missing.
reproduce: setup
	$(BIN)/tpr-attention reproduce

# The same with every reading of the paper, all searches for learning rates, and what goes past the paper: two hours.
# Its figures by number of pairs are of the thin study; those of the whole one are docs/map.md's.
docs/reproduction.md: setup
	$(BIN)/tpr-attention reproduce
	$(BIN)/tpr-attention reproduce --studies readings search beyond depth depth-search scaling
	mkdir -p docs/figures/thin && cp report/figures/data-*.png docs/figures/thin/
	find report/figures -name '*.png' ! -name 'data-*' -exec cp {} docs/figures/ ';'
	sed 's|(figures/data-|(figures/thin/data-|' report/report.md > $@

# The map of the paper's claim, with laws that nobody tuned on: an hour.
docs/map.md: setup
	$(BIN)/tpr-attention reproduce --studies data data-search laws --store runs-map --report report-map
	mkdir -p docs/figures && cp report-map/figures/*.png docs/figures/
	sed '1s/.*/# Where the claim holds: a map/' report-map/report.md > $@
	$(BIN)/python docs/figures/results.py

# From images to images, with contestants, controls and published splits: about six hours on two cores, and again only what is missing.
docs/images.md: setup
	$(BIN)/tpr-attention reproduce --studies images --store runs-images --report report-images
	mkdir -p docs/figures && cp report-images/figures/*.png docs/figures/
	sed '1s/.*/# Images: all numbers/' report-images/report.md > $@
	$(BIN)/python docs/models/pixels.py runs-images
	$(BIN)/python docs/results/keep.py runs-images docs/results/images
	$(BIN)/python docs/figures/results.py

# Recall over sequences: 45 minutes.
docs/recall.md: setup
	$(BIN)/tpr-attention reproduce --studies recall --store runs-recall --report report-recall
	mkdir -p docs/figures && cp report-recall/figures/*.png docs/figures/
	sed '1s/.*/# Recall: all numbers/' report-recall/report.md > $@
	$(BIN)/python docs/figures/results.py

# All pages, with every example executed and the explorer beside them. Warnings, links that lead nowhere, Python code that is
# not run and images without an alt text are errors.
docs: .venv/.installed-docs
	$(BIN)/python docs/extensions/checks.py
	$(BIN)/python -m sphinx --fail-on-warning --keep-going -b html docs docs/_build/html
	$(BIN)/python docs/extensions/checks.py docs/_build/html
	@echo "docs/_build/html/index.html"

# The figures of the README and of the start page, from the functions, tables and weights that they show.
figures: setup
	$(BIN)/python docs/figures/attention_strip.py
	$(BIN)/python docs/figures/results.py

# Wheel and sdist as users get them: built, metadata and README checked, and each installed with all that it asks for into a
# new environment that sees nothing of .venv. There the layers and the demo run without extras, and the command with them.
.venv-release/.installed: constraints.txt
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt build twine "readme_renderer[md]"
	@touch $@

release-check: .venv-release/.installed
	rm -rf dist && mkdir dist
	.venv-release/bin/python -m build --outdir dist .
	.venv-release/bin/python -m twine check --strict dist/*
	.venv-release/bin/python -m readme_renderer README.md -o .venv-release/README.html  # as an index shows it
	$(PYTHON) tests/release/check_installed.py dist/*.whl dist/*.tar.gz

benchmark: setup
	$(BIN)/python benchmarks/pairs.py
	$(BIN)/python benchmarks/layers.py
	$(BIN)/python benchmarks/attention.py

benchmark-training: setup
	$(BIN)/python benchmarks/training.py

benchmark-store: setup
	$(BIN)/python benchmarks/store.py

benchmark-scaling: setup
	$(BIN)/python benchmarks/scaling.py

benchmark-executors: .venv/.installed-ray
	$(BIN)/python benchmarks/executors.py

clean:
	rm -rf .venv .venv-torch-min .venv-release build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
