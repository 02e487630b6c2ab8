# Each goal sets up its own .venv; nothing but Python 3.11 or newer and pip is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check format docs clean

demo: $(VENV)/.installed
	$(BIN)/ledeline synth --pairs 20000 --seed 1 --output build/demo/newsroom.jsonl
	$(BIN)/ledeline prepare configs/demo.toml
	rm -rf build/demo/run
	$(BIN)/ledeline train configs/demo-train.toml --run build/demo/run
	$(BIN)/ledeline generate --model build/demo/run/best --explain \
		"Forecasters in Sarmia warned on Tuesday evening that Typhoon Junias would strike the coast by the weekend." \
		"After four years of talks, the governments of Ulmovia and Palmia signed a memorandum on border security early on Friday."
	$(BIN)/ledeline synth --pairs 200 --seed 2 --output build/demo/test.jsonl
	rm -rf build/demo/evaluation
	$(BIN)/ledeline evaluate --model build/demo/run/best --test newsroom=build/demo/test.jsonl --output build/demo/evaluation
	$(BIN)/ledeline report build/demo/evaluation --output build/demo/report.html

# A process a core, each with one thread, for products as small as those of tests only wait for others.
test: $(VENV)/.installed
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile

check: $(VENV)/.installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.installed
	$(BIN)/python docs/config_page.py

$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ledeline needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] + "; name another with make PYTHON=...")'
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) build src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
