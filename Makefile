# Everything starts here. `make` alone lists the targets.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh
MAKEFLAGS += --no-builtin-rules

SWEEP ?= sweeps/quick.yaml
ARGS ?=
MINUTES ?= 20
OLLAMA ?= 0.32.15
BASE ?=
NEW ?=
# The quick sweep has one build; regressions have a sweep of their own unless SWEEP names one.
REGRESS_SWEEP := $(if $(filter file,$(origin SWEEP)),sweeps/builds.yaml,$(SWEEP))
export SWEEP BASE NEW REGRESS_SWEEP

BIN := .venv/bin
RUNTIME := .venv/.installed
DEV := .venv/.installed-dev

.PHONY: help setup sweep report regress demo test test-e2e test-e2e-long engines axe check fmt bench docs golden clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(RUNTIME): pyproject.toml scripts/setup.sh
	@sh scripts/setup.sh

$(DEV): pyproject.toml scripts/setup.sh
	@sh scripts/setup.sh dev
	@touch $(RUNTIME)

setup: $(DEV) ## .venv with llamasweep and the development tools; done again only when pyproject.toml changes

sweep: $(RUNTIME) ## measure SWEEP=sweeps/quick.yaml; gets llama.cpp first if there is none; ARGS="--fresh" …
	@$(BIN)/llamasweep run --get-engine $(ARGS) -- "$$SWEEP"

report: $(RUNTIME) ## write the HTML report of the latest run
	@$(BIN)/llamasweep report $(ARGS)

regress: $(RUNTIME) ## is NEW=11434 slower than BASE=10488? SWEEP=sweeps/builds.yaml by turns, with the gate; ARGS="--max-time 1h" …
	@test -n "$$BASE" -a -n "$$NEW" || { echo 'make regress BASE=10488 NEW=11434' >&2; exit 2; }
	@$(BIN)/llamasweep ab $(ARGS) --gate --builds "$$BASE" "$$NEW" -- "$$REGRESS_SWEEP"

demo: $(RUNTIME) ## the quick sweep on the real engine, then its report in the browser
	@$(BIN)/llamasweep run --get-engine -- sweeps/quick.yaml
	@$(BIN)/llamasweep report --open

test: $(DEV) ## all tests that need no engine and no network
	@$(BIN)/pytest -q

# What the tests with real programs use, kept in the user's cache: builds with what they need besides llama-bench, and an Ollama
# (OLLAMA=0.11.4 for the older kind), which is left out where Go is missing.
engines: $(DEV)
	@$(BIN)/llamasweep builds install 11434 --with llama-quantize,llama-server,llama-batched-bench
	@$(BIN)/llamasweep builds install 10488 --with llama-quantize,llama-server
	@sh scripts/ollama.sh $(OLLAMA)

test-e2e: engines ## tests with the real llama.cpp (two builds, some minutes each the first time)
	@LLAMASWEEP_E2E=1 LLAMASWEEP_OLLAMA=$(OLLAMA) $(BIN)/pytest -q -m "(needs_llama or needs_network) and not long"

# The variant lacks the vector instructions of the processor: a build whose loss is known.
test-e2e-long: engines ## the same, with those that measure for minutes
	@$(BIN)/llamasweep builds install 11434 --name b11434-no-avx --define GGML_NATIVE=OFF --define GGML_AVX=OFF \
	  --define GGML_AVX2=OFF --define GGML_FMA=OFF --define GGML_F16C=OFF --define GGML_BMI2=OFF
	@LLAMASWEEP_E2E=1 LLAMASWEEP_LONG=1 LLAMASWEEP_OLLAMA=$(OLLAMA) $(BIN)/pytest -q -m "needs_llama or needs_network or long"

axe: ## axe-core from npm for the report's accessibility test; pinned, npm checks its hash
	@npm ci --prefix tests/axe --ignore-scripts --no-audit --no-fund --loglevel=error

check: $(DEV) ## lint, format, types, spelling, layering, sizes
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/codespell src docs sweeps benchmarks scripts README.md CONTRIBUTING.md CHANGELOG.md Makefile
	@$(BIN)/pytest -q tests/contract

fmt: $(DEV) ## format the source and apply the safe fixes
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

bench: $(DEV) ## llamasweep's own speed as JSON; MINUTES=20 bounds each measurement
	@$(BIN)/python -m benchmarks.run_all --minutes $(MINUTES)

docs: $(DEV) ## write the pages that are derived from the code
	@LLAMASWEEP_UPDATE_GOLDEN=1 $(BIN)/pytest -q tests/contract/test_schema_page.py tests/contract/test_sweep_page.py

golden: $(DEV) ## write the expected files of tests/golden anew; review them as a diff
	@LLAMASWEEP_UPDATE_GOLDEN=1 $(BIN)/pytest -q tests/golden tests/contract

clean: ## remove what was made here, except results/ and reports/
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage build dist src/*.egg-info
	@find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
