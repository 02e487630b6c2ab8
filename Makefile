# Each goal sets up its own .venv; nothing but Python 3.11 or newer and pip is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

TESTS ?= tests

.PHONY: demo newsroom test test-old-cpu check format docs clean

demo: $(VENV)/.installed-base
	$(BIN)/python examples/demo.py

# A small system from nothing, in two minutes: synthetic news, training, headlines, their judgement.
newsroom: $(VENV)/.installed
	$(BIN)/ledeline synth --pairs 20000 --seed 1 --output build/newsroom-demo/newsroom.jsonl
	$(BIN)/ledeline prepare configs/newsroom.toml
	rm -rf build/newsroom-demo/run build/newsroom-demo/evaluation
	$(BIN)/ledeline train configs/newsroom-train.toml --run build/newsroom-demo/run
	$(BIN)/ledeline synth --pairs 200 --seed 2 --output build/newsroom-demo/test.jsonl
	$(BIN)/ledeline evaluate --model build/newsroom-demo/run/best --test newsroom=build/newsroom-demo/test.jsonl --output build/newsroom-demo/evaluation
	$(BIN)/ledeline report build/newsroom-demo/evaluation --output build/newsroom-demo/report.html

# A process a core, each with one thread (tests/conftest.py).
# Files keep their order (tests/conftest.py): the longest come first. TESTS=... runs a part.
# Compiled modules are kept, for tests start hundreds of programs.
test: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/.installed
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder $(TESTS)

# The same as a CPU with AVX2 and nothing newer would run it: the switches of oneDNN, ATen, MKL and ours.
test-old-cpu: export ONEDNN_MAX_CPU_ISA = AVX2
test-old-cpu: export ATEN_CPU_CAPABILITY = avx2
test-old-cpu: export MKL_ENABLE_INSTRUCTIONS = AVX2
test-old-cpu: export LEDELINE_CPU = avx2
test-old-cpu: test

check: $(VENV)/.installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.installed
	$(BIN)/python docs/config_page.py

# The base is what headlines need; tests and the rest have all extras, in the same environment.
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

$(VENV)/.installed-base: pyproject.toml constraints.txt $(wildcard src/ledeline/runtime/native/*)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ledeline needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] + "; name another with make PYTHON=...")'
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	$(PIP_INSTALL) .
	@touch $@

$(VENV)/.installed: $(VENV)/.installed-base
	$(PIP_INSTALL) '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) build src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
