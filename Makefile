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
FUZZ_SEED ?= 0
COMPILERS ?= g++-13 clang++-19
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint requirements/constraints.txt
CXX_FILES = $(shell git ls-files --cached --others --exclude-standard -- '*.cpp' '*.hpp' '*.cu' '*.cuh' | xargs -r ls -d 2>/dev/null)
PYTHON_DIRS := $(wildcard python tests scripts fuzz examples bench docs gateware)
GATEWARE_VENV := .venv-gateware
GATEWARE_TESTS := $(GATEWARE_VENV)/bin/python gateware/run_tests.py
# ThreadSanitizer of older compilers cannot place its memory where the kernel randomises addresses widely.
NO_ASLR = $(shell setarch $$(uname -m) -R true 2>/dev/null && echo setarch $$(uname -m) -R)
export HYPOTHESIS_STORAGE_DIRECTORY := build/hypothesis
unexport PYTHONDONTWRITEBYTECODE  # of container images: each of the processes that tests start would compile all modules again
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)

# A compiler cache is used where there is one, for everything that is compiled here. The build folders differ, what is compiled does not.
ifneq (,$(shell command -v ccache))
export CMAKE_CXX_COMPILER_LAUNCHER := ccache
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
export CCACHE_SLOPPINESS := pch_defines,time_macros  # else nothing with a precompiled header is cached
endif
# Users build with whatever compiler they have: a warning that it invents is no reason to stop. CI sets this.
WERROR ?= $(if $(CI),ON,OFF)

# One build folder for the package, its tests and its benchmarks. From `make cuda` on, until `make clean`, it has the GPU code: the stamp
# remembers that, and the architectures if any were named (make cuda CUDA_ARCHITECTURES=90). Likewise for the optional links.
CUDA_STAMPED := $(shell cat $(STAMPS)/cuda 2>/dev/null)
CUDA_ARCHITECTURES ?= $(CUDA_STAMPED)
WITH_CUDA := $(if $(filter cuda,$(MAKECMDGOALS))$(wildcard $(STAMPS)/cuda),yes)
WITH_LINKS := $(if $(filter links test test-cpp test-py bench-links,$(MAKECMDGOALS))$(wildcard $(STAMPS)/links),yes)
WITH_TESTS := $(if $(filter test test-quick test-cpp bench bench-smoke,$(MAKECMDGOALS))$(wildcard $(STAMPS)/cpp-tests),yes)
BUILD := build/release
CONFIGURE = cmake --preset release -DNANET_PYTHON=ON -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python -DNANET_WERROR=$(WERROR) \
  -DNANET_CUDA=$(if $(WITH_CUDA),ON,OFF) -DNANET_LINKS=$(if $(WITH_LINKS),ON,OFF) -DNANET_TESTS=$(if $(WITH_TESTS),ON,OFF) -DNANET_BENCH=$(if $(WITH_TESTS),ON,OFF) \
  $(if $(CUDA_ARCHITECTURES),-DCMAKE_CUDA_ARCHITECTURES='$(CUDA_ARCHITECTURES)')
ALL = -DNANET_LINKS=ON -DNANET_TESTS=ON -DNANET_BENCH=ON -DNANET_PYTHON=ON -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python -DNANET_WERROR=$(WERROR)
# The system's GoogleTest may not link with another compiler: then it is compiled along, from its package's sources.
OTHER_CXX = -DCMAKE_CXX_COMPILER=% -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON

.PHONY: help setup cuda links demo test test-quick test-cpp test-py test-rdma test-gateware test-arm mutate-gateware bitstream registers \
  build-asan build-arm compilers test-gpu lint format bench bench-links bench-smoke sanitize fuzz coverage wheel clean
help: ## print these verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' Makefile

setup: $(STAMPS)/native ## system packages, virtual environment, build and editable install of the nanet package
	@echo "ready: $(BIN)/nanet"

cuda: packages-run $(STAMPS)/cuda $(STAMPS)/native ## as setup, with the GPU code: a CUDA toolkit's compiler, or PyPI's; needs no GPU
	@echo "ready, with GPU code: $(BIN)/nanet"

links: packages-run packages-links $(STAMPS)/links $(STAMPS)/native ## as setup, with the links that need a library or a simulator: AF_XDP, DPDK, UCX, gateware
	@echo "ready, with optional links: $(BIN)/nanet"

demo: $(STAMPS)/native ## the whole loop on this machine: emulated boards -> rings -> answers, with a report
	@$(BIN)/nanet demo

test: packages-run packages-links packages-test packages-bench $(STAMPS)/native $(STAMPS)/test $(STAMPS)/cpp-tests ## all tests: C++ units (release build), Python, integration over real sockets, gateware in short
	@$(build_all)
	@rm -f build/pytest.xml
	scripts/side_by_side.sh \
	  "gateware $(GATEWARE_TESTS) --jobs 1 --short --unless-passed" \
	  "c++ ctest --preset release" \
	  "python $(BIN)/pytest --numprocesses=$(JOBS) --dist=loadgroup --junit-xml=build/pytest.xml"
	$(if $(WITH_CUDA),$(BUILD)/tests/gpu/test_gpu | tee build/test-gpu.log)
	@$(BIN)/python scripts/test_summary.py $(BUILD)/Testing/Temporary/LastTest.log build/pytest.xml $(if $(WITH_CUDA),build/test-gpu.log)

test-quick: packages-run packages-test $(STAMPS)/native $(STAMPS)/test $(STAMPS)/cpp-tests ## for a change, within 2 minutes: the quick C++ units and the Python tests without processes, as they were built last
	@$(build_all)
	scripts/side_by_side.sh \
	  "c++ ctest --preset release --label-exclude slow" \
	  "python $(BIN)/pytest tests/python -m 'not slow' -q --numprocesses=$(JOBS) --dist=loadgroup"

test-cpp: packages-run packages-test $(STAMPS)/native $(STAMPS)/cpp-tests ## C++ units whose name holds FILTER: make test-cpp FILTER=Merger; all of them without it
	@$(build_all)
	GTEST_FILTER='*$(FILTER)*' GTEST_FAIL_IF_NO_TEST_SELECTED=0 ctest --preset release
	@grep -q '^\[       OK \]' $(BUILD)/Testing/Temporary/LastTest.log || { echo "error: no C++ test ran (none has '$(FILTER)' in its name) list them with $(BUILD)/test_flow --gtest_list_tests" >&2; exit 1; }

test-py: packages-run packages-test $(STAMPS)/native $(STAMPS)/test ## Python tests as pytest takes them: make test-py ARGS='tests/python/test_cli.py -k help'
	$(BIN)/pytest $(ARGS)

test-rdma: packages-run packages-test ## remote memory over RC verbs: Debian's kernel with soft-RoCE in QEMU; downloads both (170 MB), needs no hardware
	"$$(scripts/find_python.sh)" scripts/test_rdma.py --jobs $(JOBS)

test-gateware: packages-run $(GATEWARE_VENV)/ready ## the gateware: lint, synthesis, proofs, every bench of gateware/tb, and some faults that they must find; the simulator comes from PyPI
	$(GATEWARE_TESTS) --jobs $(JOBS) $(GATEWARE_FLAGS)

bitstream: packages-run $(GATEWARE_VENV)/ready ## of the NIC at 1 Gb/s for a board of gateware/boards: make bitstream BOARD=colorlight_i9
	$(GATEWARE_VENV)/bin/python gateware/syn/bitstream.py $(or $(BOARD),colorlight_i9)

registers: packages-run $(GATEWARE_VENV)/ready ## what is made from gateware/registers/nic.rdl and contract.hpp, and the reference as HTML and Python in build/gateware/registers
	$(GATEWARE_VENV)/bin/python gateware/scripts/make_registers.py
	$(GATEWARE_VENV)/bin/python gateware/scripts/make_contract.py
	$(GATEWARE_VENV)/bin/python gateware/scripts/make_registers.py --docs build/gateware/registers
	@echo "build/gateware/registers/nic/html/index.html and node/html/index.html"

test-arm: packages-run ## compiled for 64-bit Arm, its unit tests and a whole loop under qemu
	NANET_WERROR=$(WERROR) scripts/test_arm.sh

wheel: packages-run packages-links packages-test $(STAMPS)/links ## dist/: wheel (manylinux) and sdist, installed and tried in a fresh virtual environment
	scripts/make_wheel.sh $(if $(filter ON,$(WERROR)),--config-settings=cmake.define.NANET_WERROR=ON)

mutate-gateware: packages-run $(GATEWARE_VENV)/ready ## faults put into the gateware, and the share that its benches find; MUTANTS=200 for more a module
	$(GATEWARE_VENV)/bin/python gateware/mutate.py --mutants $(or $(MUTANTS),40) --seed 1

test-gpu: ## on a machine with a GPU: its tests, also under compute-sanitizer; needs a CUDA compiler, CMake, Ninja and Highway, no Python
	@mkdir -p build
	@$(call quietly,cmake --preset cuda-release)
	cmake --build --preset cuda-release --target test_gpu
	scripts/test_gpu.sh build/cuda-release/tests/gpu/test_gpu

compilers: packages-run packages-links packages-test $(STAMPS)/native $(STAMPS)/links $(STAMPS)/compilers ## all C++ built with each of COMPILERS (g++-13 clang++-19), and with the newest CMake
	@scripts/system_packages.sh $(COMPILERS)
	for compiler in $(COMPILERS); do \
	  echo "--- $$compiler"; \
	  $(BIN)/cmake --preset debug -B build/$$compiler $(subst %,$$compiler,$(OTHER_CXX)) $(ALL) >build/configure.log || { cat build/configure.log >&2; exit 1; }; \
	  $(BIN)/cmake --build build/$$compiler --target all micro_benchmarks; \
	done

lint: $(STAMPS)/native $(STAMPS)/lint ## layers, file heads and sizes, made pages, formatting, types
	$(BIN)/python scripts/check_layers.py
	$(BIN)/python scripts/count_doors.py --check
	$(BIN)/python scripts/check_docs.py
	$(BIN)/python scripts/make_json_page.py --check
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

bench: packages-bench $(STAMPS)/native $(STAMPS)/test ## rings, rate and latency, beside their peers in the same run
	@mkdir -p out && rm -f out/bench.csv
	$(BIN)/nanet bench rings --json out/bench-rings.json --csv out/bench.csv
	$(BIN)/nanet bench rate --json out/bench-rate.json --csv out/bench.csv
	$(BIN)/nanet bench rate --boards 4 --json out/bench-rate-4.json --csv out/bench.csv
	$(BIN)/nanet bench latency --json out/bench-latency.json --csv out/bench.csv

bench-links: packages-bench packages-links packages-peers $(STAMPS)/native $(STAMPS)/peers ## every link beside the others and its peers, over veth in network namespaces; as root
	@mkdir -p out && rm -f out/links.csv
	$(BIN)/nanet bench latency --link all --json out/bench-latency-links.json --csv out/links.csv
	$(BIN)/nanet bench rate --link all --json out/bench-rate-links.json --csv out/links.csv

bench-smoke: packages-run packages-test packages-bench $(STAMPS)/native $(STAMPS)/test $(STAMPS)/cpp-tests ## each benchmark that no test runs, once and briefly: that it runs, not how fast
	@$(build_all)
	cmake --build --preset release --target micro_benchmarks
	scripts/bench_smoke.sh $(BUILD)

# The long part of two verbs, which CI does beside its tests.
build-arm: packages-run
	NANET_WERROR=$(WERROR) scripts/test_arm.sh --build

build-asan: packages-run packages-links packages-test $(STAMPS)/package $(STAMPS)/links $(STAMPS)/compilers
	@scripts/system_packages.sh $(ASAN_CXX)
	@echo "with CMake $$(cmake --version | sed -n '1s/.* //p')"
	@$(call quietly,cmake --preset asan $(ALL) $(if $(ASAN_CXX),$(subst %,$(ASAN_CXX),$(OTHER_CXX))))
	cmake --build --preset asan

# With the newest CMake: the oldest is Debian 12's.
build-asan sanitize: export PATH := $(CURDIR)/$(BIN):$(PATH)
sanitize: build-asan ## the C++ tests under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer; ASAN_CXX=clang++-19 TSAN_CXX=g++-13 to name compilers
	@scripts/system_packages.sh $(TSAN_CXX)
	@$(call quietly,cmake --preset tsan $(ALL) $(if $(TSAN_CXX),$(subst %,$(TSAN_CXX),$(OTHER_CXX))))
	scripts/side_by_side.sh "asan ctest --preset asan" "build-tsan nice cmake --build --preset tsan"
	$(NO_ASLR) ctest --preset tsan

fuzz: packages-run packages-fuzz $(STAMPS)/native $(STAMPS)/fuzz ## each fuzz target for FUZZ_SECONDS (60), JOBS at a time
	@$(build_fuzz)
	$(BIN)/python scripts/fuzz.py build/fuzz $(FUZZ_SECONDS) --jobs $(JOBS) --seed $(FUZZ_SEED)

coverage: packages-run packages-fuzz $(STAMPS)/native $(STAMPS)/fuzz ## how many lines of each parser the fuzz corpus reaches; fails below 95 %
	@$(build_fuzz)
	$(BIN)/python scripts/fuzz_coverage.py build/fuzz

clean: ## remove what was built (the system packages stay)
	rm -rf build out dist .setup.lock $(VENV) $(GATEWARE_VENV) python/nanet/*.so python/nanet/_core.pyi

# --- set-up, step by step; what is there already is left alone ---
# A command whose output is shown only if it fails.
quietly = mkdir -p build && { $(1) >build/configure-$(@F).log 2>&1 || { cat build/configure-$(@F).log >&2; exit 1; }; }
build_fuzz = $(in_turn) $(call quietly,cmake --preset fuzz -DNANET_WERROR=$(WERROR)) && cmake --build --preset fuzz --target fuzz_targets || $(build_failed)
build_all = $(in_turn) $(call quietly,$(CONFIGURE)) && cmake --build --preset release || $(build_failed)
# Two makes in one folder take turns: what comes after this in a recipe line is done by one of them at a time.
in_turn = exec 9>.setup.lock; flock --nonblock 9 || { echo "waiting for another make in this folder"; flock 9; };
# What a recipe line leaves behind if it fails is taken up by the next make.
pip_failed = { echo "error: cannot install Python packages (pip says why above) check the network, the space and pip's settings, then run make again" >&2; exit 1; }
build_failed = { echo "error: nanet did not build (see above) mend that, then run make again: it goes on where it stopped" >&2; exit 1; }

.PHONY: packages-run packages-links packages-test packages-bench packages-fuzz packages-peers
packages-run packages-links packages-test packages-bench packages-fuzz packages-peers: packages-%:
	@scripts/system_packages.sh $*

$(STAMPS)/venv: | packages-run
	@$(in_turn) if [[ -e $@ ]]; then exit; fi; \
	echo "making $(VENV) (the first time takes some minutes in all)"; \
	rm -rf $(VENV); \
	"$$(scripts/find_python.sh)" -m venv $(VENV); \
	$(PIP) --upgrade pip setuptools || $(pip_failed); \
	mkdir -p $(STAMPS); touch $@

$(GATEWARE_VENV)/ready: requirements/gateware.txt | packages-run
	@$(in_turn) if [[ $@ -nt $< ]]; then exit; fi; \
	echo "installing the gateware's tools into $(GATEWARE_VENV)"; \
	rm -rf $(GATEWARE_VENV); \
	"$$(scripts/find_python.sh)" -m venv $(GATEWARE_VENV); \
	$(GATEWARE_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement $< || $(pip_failed); \
	touch $@

# The package as it lies in python/: an edit of Python needs no verb. What is compiled is put beside it by the next rule. The path alone takes
# the place of scikit-build's own finder, which comes before PYTHONPATH.
$(STAMPS)/package: $(STAMPS)/venv requirements/constraints.txt pyproject.toml
	@$(in_turn) \
	$(PIP) --group build || $(pip_failed); \
	$(PIP) --no-build-isolation --config-settings=editable.mode=inplace --config-settings=wheel.cmake=false --editable . || $(pip_failed); \
	pwd | sed 's|$$|/python|' >"$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/_editable_skbc_nanet.pth"; \
	touch $@

# Directories are listed too, so that a file taken away is noticed like one that came or changed.
NATIVE_SOURCES := $(shell find CMakeLists.txt CMakePresets.json cmake include src python/nanet/bindings gateware/rtl gateware/model)
$(STAMPS)/native: $(STAMPS)/package $(NATIVE_SOURCES)
	@echo "building nanet $(if $(WITH_CUDA),with,without) GPU code"
	@$(in_turn) $(call quietly,$(CONFIGURE)) || $(build_failed); \
	cmake --build --preset release --target nanet_python $$([ -t 1 ] || echo -- --quiet) || $(build_failed); \
	cmake --install $(BUILD) --component python --prefix python >build/configure.log; \
	touch $@

ifdef WITH_CUDA
$(STAMPS)/native: $(STAMPS)/cuda
endif
ifdef WITH_LINKS
$(STAMPS)/native: $(STAMPS)/links
endif
$(STAMPS)/links: $(STAMPS)/venv requirements/constraints.txt pyproject.toml $(GATEWARE_VENV)/ready | packages-links
	@$(PIP) --group rdma || $(pip_failed)
	@touch $@
ifneq ($(CUDA_ARCHITECTURES),$(CUDA_STAMPED))
.PHONY: $(STAMPS)/cuda
endif
$(STAMPS)/cuda: $(STAMPS)/venv requirements/constraints.txt pyproject.toml
	@scripts/find_nvcc.sh >/dev/null || { echo "installing a CUDA compiler from PyPI into $(VENV)"; $(PIP) --group cuda; }
	@scripts/find_nvcc.sh || { echo "error: no CUDA compiler (PyPI's does not run here) install the CUDA toolkit, 13 or newer" >&2; exit 1; }
	@echo '$(CUDA_ARCHITECTURES)' >$@

$(STAMPS)/cpp-tests: | $(STAMPS)/venv packages-test
	@touch $@

$(STAMPS)/test $(STAMPS)/lint $(STAMPS)/peers $(STAMPS)/compilers $(STAMPS)/fuzz: $(STAMPS)/%: $(STAMPS)/venv requirements/constraints.txt pyproject.toml
	@$(PIP) --group $* || $(pip_failed)
	@touch $@
