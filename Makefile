# Every target works in a fresh clone: the first one called makes the virtual environment.
VENV ?= .venv
PYTEST_ARGS ?= -n auto
# The extras that are installed: EXTRAS=suite,rapids-cu12 for a machine with a GPU.
EXTRAS ?= test,lint,docs
# INSTALL_ARGS=--dry-run finds what would be installed in a new environment, and downloads none of it.
INSTALL_ARGS ?=
# INSTALLER="uv pip install --python .venv" is quicker.
INSTALLER ?= $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Minutes of `make stress`.
MINUTES ?= 30
# The tests whose compiled kernels also run as plain Python, for `make coverage`.
KERNEL_TESTS ?= tests/cpu_fallback
# GPU_ARGS="--only bits,kernels --time-limit 540" narrows `make gpu`; --help says more.
GPU_ARGS ?=
# RAPIDS_ARGS="--rows 1e8 --work folds --time-limit 540" narrows `make rapids-bench`; benchmarks/README.md has four
# commands for half an hour.
RAPIDS_ARGS ?=
# BENCH_ARGS="--quick" runs every line of `make bench` once, on a few rows; --help says more.
BENCH_ARGS ?=
# FAMILY_ARGS="--works count,ordinal" narrows `make family-bench`; --quick and --help as above.
FAMILY_ARGS ?=
# BILLION_ARGS="--rows 1e8 --folder /mnt/large" narrows `make billion`, which wants 48 GB of disk; --help says more.
BILLION_ARGS ?=
# The CUDA backend in numba's simulator, on arrays that refuse what CuPy refuses.
SIMULATOR = NUMBA_ENABLE_CUDASIM=1 GPU_ENCODE_SIMULATED_ARRAYS=tests.cuda.stand_in OPS_BACKENDS=cuda-simulator
# cuDF wants an older numba than the suite has, and 3 GB: it gets an environment of its own.
RAPIDS_VENV ?= $(VENV)-rapids
# Spark and Ray are large, and Ray pins other libraries: an environment of their own, too.
ENGINES_VENV ?= $(VENV)-engines
# ENGINE_ARGS= runs all tests of engines, which take ten minutes.
ENGINE_ARGS ?= -m daily
# What has the CUDA backend compute.  Tests marked `host` or `long` are left out of the simulator; LONG=1 runs them too.
SIM_TESTS ?= tests/cpu_fallback tests/cuda tests/encoders tests/family tests/methods/cluster tests/methods/factors tests/methods/votes \
	tests/methods/proximity tests/scale/parts tests/study/tuning tests/benchmarks/test_gpu_steps.py

SUPPORTED = import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 16))
PYTHON = $(shell for python in python3 python3.13 python3.14 python3.15 python3.12 python3.11; do \
	$$python -c '$(SUPPORTED)' 2>/dev/null && echo $$python && break; done)
BIN = $(VENV)/bin
INSTALLED = $(VENV)/.gpu-encode-installed

.DEFAULT_GOAL := help
.PHONY: help install demo bench family-bench billion format lint types check test test-long stress engines sim rapids ptx gpu sanitize rapids-bench doctest docs coverage build ci clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(INSTALLED)  ## make the virtual environment and install the checkout in it, editable

$(INSTALLED): pyproject.toml
	@test -x $(BIN)/python || test -n "$(PYTHON)" || { echo "gpu-encode needs Python 3.11 to 3.15" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALLER) $(INSTALL_ARGS) --editable '.[$(EXTRAS)]'
	@touch $@

demo: $(INSTALLED)  ## the main job on rows that it makes: before and after, and a leak check of the schemes
	$(BIN)/gpu-encode demo

# Not installed by `make install`: EXTRAS=test,lint,bench has the other libraries; without them their lines are left out.
bench: $(INSTALLED)  ## ours beside other libraries and bare loops, on this CPU; BENCH_ARGS="--only table --rows 1e6" narrows it
	$(BIN)/python -m benchmarks.cpu $(BENCH_ARGS)

family-bench: $(INSTALLED)  ## the other encoders beside other libraries, on this CPU; FAMILY_ARGS="--works count" narrows it
	$(BIN)/python -m studies.family $(FAMILY_ARGS)

billion: $(INSTALLED)  ## a billion rows through encode_dataset: time, memory, every bit of a sample; wants 48 GB of disk
	$(BIN)/python -m studies.billion $(BILLION_ARGS)

format: $(INSTALLED)  ## rewrite the code in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lint: $(INSTALLED)  ## style and format, of shell scripts, Dockerfiles and workflows too; nothing is rewritten
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/shellcheck .ci/* docker/*.sh
	$(BIN)/hadolint docker/*.Dockerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

types: $(INSTALLED)  ## mypy --strict on both packages
	$(BIN)/mypy

# CHECK_SECONDS=200 leaves less to continuous integration.
check: $(INSTALLED)  ## the tests that what differs from main can break, nearest first, in a minute; SINCE=HEAD~1 names another commit
	$(BIN)/python -m tests.architecture.check $(SINCE)

# LANE=core has all tests but the guests', LANE=scale those of one guest.
GUESTS = methods scale serve study cli
LANE ?=
test: $(INSTALLED)  ## the whole suite; on all cores; PYTEST_ARGS="-k ordered" narrows it, LANE=core or LANE=scale to a part
	@test -z "$(filter-out core $(GUESTS),$(LANE))" || { echo "LANE is one of: core $(GUESTS)" >&2; exit 2; }
	$(BIN)/python -m pytest $(PYTEST_ARGS) $(if $(filter core,$(LANE)),$(GUESTS:%=--ignore=tests/%),$(LANE:%=tests/%))

# A seed draws the same examples again: make test-long SEED=... PYTEST_ARGS=tests/laws/test_orders.py
SEED ?= $(shell date +%s)
test-long: $(INSTALLED)  ## the tests that draw examples, on new ones, ten times as many; SEED=... repeats a run
	$(BIN)/python -m pytest --hypothesis-profile=long --hypothesis-seed=$(SEED) -m hypothesis $(PYTEST_ARGS)

stress: $(INSTALLED)  ## calls on threads, in forks, interrupted and killed at random points; MINUTES=5 asks for five of them
	$(BIN)/python -m tests.stress --minutes $(MINUTES)

engines:  ## Spark, which needs Java, and Ray as they are, in an environment of their own; ENGINE_ARGS= leaves out nothing
	$(MAKE) install VENV=$(ENGINES_VENV) EXTRAS=suite,engines
	$(ENGINES_VENV)/bin/python -m pytest $(ENGINE_ARGS) tests/scale/engines

sim: $(INSTALLED)  ## what shows the CUDA backend, in numba's simulator; SIM_TESTS=tests/cuda narrows it, LONG=1 leaves out nothing
	rm -rf build/launches
	$(SIMULATOR) $(BIN)/python -m pytest $(PYTEST_ARGS) $(SIM_TESTS)

rapids:  ## cuDF's own frames, on the host's memory in the simulator, in an environment with cuDF
	$(MAKE) install VENV=$(RAPIDS_VENV) EXTRAS=suite,rapids
	RAPIDS=1 GPU_ENCODE_SIMULATED_ARRAYS=tests.cuda.stand_in OPS_BACKENDS=cuda-simulator \
		$(RAPIDS_VENV)/bin/python -m pytest -p tests.rapids.simulator $(PYTEST_ARGS) tests/rapids

ptx: $(INSTALLED)  ## every CUDA kernel compiled without a GPU; what it takes, in build/kernels.md; EVERY_COMBINATION=1 for every architecture
	PTX=1 $(BIN)/python -m pytest -p no:xdist tests/ptx
	PTX=1 $(BIN)/python -m pytest $(PYTEST_ARGS) tests/cuda/test_raw_kernels.py -k test_sources_compile

# Installs nothing: a machine with a GPU often has no network.
gpu:  ## on a machine with a GPU: the suites on it, then every kernel measured, into benchmarks/results
	$(if $(wildcard $(BIN)/python),$(BIN)/python,python3) -m benchmarks.gpu $(GPU_ARGS)

sanitize:  ## on a machine with a GPU: compute-sanitizer's memcheck and racecheck while some of the suite runs
	$(MAKE) gpu GPU_ARGS="--only sanitizer $(GPU_ARGS)"

rapids-bench:  ## on a machine with a GPU and cuDF: ours beside cuDF, cuML and the CPU, into benchmarks/results
	$(if $(wildcard $(RAPIDS_VENV)/bin/python),$(RAPIDS_VENV)/bin/python,python3) -m benchmarks.rapids $(RAPIDS_ARGS)

# Two modules need Spark and Ray, which this environment lacks.
doctest: $(INSTALLED)  ## every example in a docstring
	$(BIN)/python -m pytest --doctest-modules --doctest-ignore-import-errors gpu_encode cpu_fallback

# The variable silences an advertisement of the theme's makers.
docs: $(INSTALLED)  ## the documentation site, in build/site; a warning or a link that leads nowhere is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

# Coverage cannot see into compiled kernels, so their own tests run a second time as Python (NumPy then warns where
# a kernel wraps around 2^64 on purpose), those for a GPU in the simulator, and all runs count.
coverage: $(INSTALLED)  ## line coverage of both packages, kernels included, at least 95 %
	$(BIN)/coverage erase
	$(BIN)/python -m pytest --cov --cov-report= --cov-fail-under=0 $(PYTEST_ARGS)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest --cov --cov-append --cov-report= --cov-fail-under=0 \
		-W 'ignore:overflow encountered:RuntimeWarning' $(KERNEL_TESTS)
	$(SIMULATOR) $(BIN)/python -m pytest --cov --cov-append --cov-report= --cov-fail-under=0 $(PYTEST_ARGS) $(SIM_TESTS)
	$(BIN)/coverage report

build: $(INSTALLED)  ## a wheel, built in isolation, in dist/
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

ci:  ## what continuous integration runs, in an environment of its own
	.ci/run

clean:  ## remove what the tools left behind, the virtual environment excepted
	rm -rf build dist htmlcov cpu_fallback/compiled/__pycache__ .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find gpu_encode cpu_fallback tests -name __pycache__ -type d -prune -exec rm -rf {} +
