# SPDX-License-Identifier: Apache-2.0
# The one entry. Each verb does its own set-up, quickly when there is nothing to do, and .ci/run calls these verbs only.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
.NOTPARALLEL:

JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint requirements/constraints.txt
# Directories are listed too, so that a file taken away is noticed like one that came or changed.
PACKAGE_SOURCES := $(shell find CMakeLists.txt cmake include src python -name __pycache__ -prune -o -print) pyproject.toml
CXX_FILES = $(shell git ls-files --cached --others --exclude-standard -- '*.cpp' '*.hpp' '*.cu' '*.cuh' | xargs -r ls -d 2>/dev/null)
PYTHON_DIRS := $(wildcard python tests scripts examples bench docs gateware)
GATEWARE_VENV := .venv-gateware
GATEWARE_TESTS := $(GATEWARE_VENV)/bin/python gateware/run_tests.py --jobs $(JOBS)
# ThreadSanitizer of older compilers cannot place its memory where the kernel randomises addresses widely.
NO_ASLR = $(shell setarch $$(uname -m) -R true 2>/dev/null && echo setarch $$(uname -m) -R)
export HYPOTHESIS_STORAGE_DIRECTORY := build/hypothesis
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)

# From `make cuda` on, until `make clean`, the package in .venv is one with GPU code: the stamp remembers that, and the architectures if any
# were named (make cuda CUDA_ARCHITECTURES=90). The build folder is that of the CMake preset, so nothing is compiled twice.
CUDA_BUILD := build/cuda-release
CUDA_STAMPED := $(shell cat $(STAMPS)/cuda 2>/dev/null)
CUDA_ARCHITECTURES ?= $(CUDA_STAMPED)
WITH_CUDA :=
PACKAGE_SETTINGS :=
GPU_TEST_LOG :=
ifneq (,$(filter cuda,$(MAKECMDGOALS))$(wildcard $(STAMPS)/cuda))
WITH_CUDA := yes
PACKAGE_SETTINGS := --config-settings=build-dir=$(CUDA_BUILD) --config-settings=cmake.define.NANET_CUDA=ON \
  $(if $(CUDA_ARCHITECTURES),--config-settings='cmake.define.CMAKE_CUDA_ARCHITECTURES=$(CUDA_ARCHITECTURES)')
GPU_TEST_LOG := build/test-gpu.log
endif

# CMake takes the optional links in wherever it finds their libraries; this stamp only remembers that the package was built since they came.
WITH_LINKS := $(if $(filter links test bench-links,$(MAKECMDGOALS))$(wildcard $(STAMPS)/links),yes)

.PHONY: help setup cuda links demo test test-rdma test-gateware mutate-gateware registers test-gpu lint format bench bench-links bench-smoke sanitize fuzz clean
help: ## print these verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' Makefile

setup: $(STAMPS)/install ## system packages, virtual environment, build and install of the nanet package
	@echo "ready: $(BIN)/nanet"

cuda: packages-run $(STAMPS)/cuda $(STAMPS)/install ## as setup, with the GPU code: a CUDA toolkit's compiler, or PyPI's; needs no GPU
	@echo "ready, with GPU code: $(BIN)/nanet"

links: packages-run packages-links $(STAMPS)/links $(STAMPS)/install ## as setup, with the links that need a library or a simulator: AF_XDP, DPDK, UCX, gateware
	@echo "ready, with optional links: $(BIN)/nanet"

demo: $(STAMPS)/install ## the whole loop on this machine: emulated boards -> rings -> answers, with a report
	@$(BIN)/nanet demo

test: packages-run packages-links packages-test packages-bench $(STAMPS)/install $(STAMPS)/test $(GATEWARE_VENV)/ready ## all tests: C++ units (release build), Python, integration over real sockets, gateware in short
	@rm -f build/pytest.xml
	cmake --preset host-release >build/configure.log || { cat build/configure.log; exit 1; }
	cmake --build --preset host-release
	ctest --preset host-release
	$(BIN)/pytest --junit-xml=build/pytest.xml
	$(if $(WITH_CUDA),cmake --preset cuda-release >build/configure.log || { cat build/configure.log; exit 1; })
	$(if $(WITH_CUDA),cmake --build --preset cuda-release --target test_gpu)
	$(if $(WITH_CUDA),$(CUDA_BUILD)/tests/gpu/test_gpu | tee $(GPU_TEST_LOG))
	$(GATEWARE_TESTS) --short
	@$(BIN)/python scripts/test_summary.py build/host-release/Testing/Temporary/LastTest.log build/pytest.xml $(GPU_TEST_LOG)

test-rdma: packages-run packages-test ## remote memory over RC verbs: Debian's kernel with soft-RoCE in QEMU; downloads both (170 MB), needs no hardware
	"$$(scripts/find_python.sh)" scripts/test_rdma.py --jobs $(JOBS)

test-gateware: packages-run $(GATEWARE_VENV)/ready ## the gateware: lint, synthesis, proofs, every bench of gateware/tb, and some faults that they must find; the simulator comes from PyPI
	$(GATEWARE_TESTS)
	$(GATEWARE_VENV)/bin/python gateware/mutate.py --mutants 8 --seed 1 --floor 0.9 --json build/gateware/mutation.json write_arbiter page_table rx_fifo tx_fifo

registers: packages-run $(GATEWARE_VENV)/ready ## what is made from gateware/registers/nic.rdl, and the reference as HTML and Python in build/gateware/registers
	$(GATEWARE_VENV)/bin/python gateware/scripts/make_registers.py
	$(GATEWARE_VENV)/bin/python gateware/scripts/make_registers.py --docs build/gateware/registers
	@echo "build/gateware/registers/html/index.html"

mutate-gateware: packages-run $(GATEWARE_VENV)/ready ## faults put into the gateware, and the share that its benches find; MUTANTS=200 for more a module
	$(GATEWARE_VENV)/bin/python gateware/mutate.py --mutants $(or $(MUTANTS),40) --seed 1

test-gpu: ## on a machine with a GPU: its tests, also under compute-sanitizer; needs a CUDA compiler, CMake, Ninja and Highway, no Python
	@mkdir -p build
	cmake --preset cuda-release >build/configure.log || { cat build/configure.log; exit 1; }
	cmake --build --preset cuda-release --target test_gpu
	scripts/test_gpu.sh $(CUDA_BUILD)/tests/gpu/test_gpu

lint: $(STAMPS)/install $(STAMPS)/test $(STAMPS)/lint ## layers, file heads and sizes, formatting, types
	$(BIN)/python scripts/check_layers.py
	@echo clang-format
	@$(BIN)/clang-format --dry-run -Werror $(CXX_FILES) || { echo "error: not in the project's format (see above) run make format" >&2; exit 1; }
	$(BIN)/ruff check $(PYTHON_DIRS)
	$(BIN)/ruff format --check $(PYTHON_DIRS)
	$(BIN)/mypy --package nanet
	$(BIN)/mypy --strict examples/*.py

format: $(STAMPS)/lint ## rewrite the sources in the project's format
	@$(BIN)/clang-format -i $(CXX_FILES)
	$(BIN)/ruff check --fix --quiet $(PYTHON_DIRS) || true
	$(BIN)/ruff format $(PYTHON_DIRS)

bench: packages-bench $(STAMPS)/install $(STAMPS)/test ## rings, rate and latency, beside their peers in the same run
	@mkdir -p out && rm -f out/bench.csv
	$(BIN)/nanet bench rings --json out/bench-rings.json --csv out/bench.csv
	$(BIN)/nanet bench rate --json out/bench-rate.json --csv out/bench.csv
	$(BIN)/nanet bench rate --boards 4 --json out/bench-rate-4.json --csv out/bench.csv
	$(BIN)/nanet bench latency --json out/bench-latency.json --csv out/bench.csv

bench-links: packages-bench packages-links $(STAMPS)/install $(STAMPS)/peers ## every link beside the others and its peers, over veth in network namespaces; as root
	@mkdir -p out && rm -f out/links.csv
	$(BIN)/nanet bench latency --link all --json out/bench-latency-links.json --csv out/links.csv
	$(BIN)/nanet bench rate --link all --json out/bench-rate-links.json --csv out/links.csv

bench-smoke: packages-bench $(STAMPS)/install $(STAMPS)/test ## each benchmark once and briefly: that it runs, not how fast
	scripts/bench_smoke.sh

sanitize: packages-run packages-test $(STAMPS)/test ## the C++ tests under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer
	cmake --preset host-asan >/dev/null  # -O1: at -O2 the build takes three times as long
	cmake --build --preset host-asan
	ctest --preset host-asan
	cmake --preset host-tsan >/dev/null
	cmake --build --preset host-tsan
	$(NO_ASLR) ctest --preset host-tsan --exclude-regex "^unit[.]rich$$"  # no thread in it (check_layers), and it takes very long

fuzz: packages-run packages-fuzz ## each fuzz target for FUZZ_SECONDS (60)
	cmake --preset host-fuzz >/dev/null
	cmake --build --preset host-fuzz
	scripts/fuzz.sh build/host-fuzz $(FUZZ_SECONDS)

clean: ## remove what was built (the system packages stay)
	rm -rf build out $(VENV) $(GATEWARE_VENV)

# --- set-up, step by step; what is there already is left alone ---
.PHONY: packages-run packages-links packages-test packages-bench packages-fuzz
packages-run packages-links packages-test packages-bench packages-fuzz: packages-%:
	@scripts/system_packages.sh $*

$(STAMPS)/venv: | packages-run
	rm -rf $(VENV)
	"$$(scripts/find_python.sh)" -m venv $(VENV)
	$(PIP) --upgrade pip setuptools
	@mkdir -p $(STAMPS) && touch $@

$(GATEWARE_VENV)/ready: requirements/gateware.txt | packages-run
	@echo "installing the gateware's tools into $(GATEWARE_VENV)"
	@rm -rf $(GATEWARE_VENV)
	@"$$(scripts/find_python.sh)" -m venv $(GATEWARE_VENV)
	@$(GATEWARE_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement $<
	@touch $@

$(STAMPS)/install: $(STAMPS)/venv requirements/constraints.txt $(PACKAGE_SOURCES)
	@echo "installing nanet into $(VENV) $(if $(WITH_CUDA),with,without) GPU code (the first time takes some minutes)"
	@$(PIP) --group build
	@$(PIP) --no-build-isolation $(PACKAGE_SETTINGS) . || { echo "error: the package did not build (the compiler says why above)" >&2; exit 1; }
	@touch $@

ifdef WITH_CUDA
$(STAMPS)/install: $(STAMPS)/cuda
endif
ifdef WITH_LINKS
$(STAMPS)/install: $(STAMPS)/links
endif
$(STAMPS)/links: $(STAMPS)/venv requirements/constraints.txt pyproject.toml $(GATEWARE_VENV)/ready | packages-links
	@$(PIP) --group rdma
	@touch $@
ifneq ($(CUDA_ARCHITECTURES),$(CUDA_STAMPED))
.PHONY: $(STAMPS)/cuda
endif
$(STAMPS)/cuda: $(STAMPS)/venv requirements/constraints.txt pyproject.toml
	@scripts/find_nvcc.sh >/dev/null || { echo "installing a CUDA compiler from PyPI into $(VENV)"; $(PIP) --group cuda; }
	@scripts/find_nvcc.sh || { echo "error: no CUDA compiler (PyPI's does not run here) install the CUDA toolkit, 13 or newer" >&2; exit 1; }
	@echo '$(CUDA_ARCHITECTURES)' >$@

$(STAMPS)/test $(STAMPS)/lint $(STAMPS)/peers: $(STAMPS)/%: $(STAMPS)/venv requirements/constraints.txt pyproject.toml
	@$(PIP) --group $*
	@touch $@
