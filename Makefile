# Every target sets up what it needs; on a fresh machine `make demo` and `make test` are enough.

PYTHON ?=
VENV := .venv
BIN := $(VENV)/bin
VENV_SPARK_4_1 := .venv-spark-4.1
VENV_DBT := .venv-dbt
VENV_INTEROP := .venv-interop
VENV_DBT_JAR := .venv-spark-4.1-dbt
DIST ?= dist
SPARKS ?= 4.0 4.1 4.2 4.3
SOURCES := src tests bench tools examples
FRAZIL_FUZZ_SECONDS ?= 60
export FRAZIL_FUZZ_SECONDS

.DEFAULT_GOAL := help
.PHONY: help azurite setup demo check test test-all test-all-local test-all-spark test-browser test-extended test-dbt test-interop test-recipes test-sparks bench new names docs dist notebook fix lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9.-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Make .venv and install the locked packages, PySpark among them; does nothing when they are there
	@PYTHON="$(PYTHON)" tools/setup.sh dev
	@PYTHON="$(PYTHON)" tools/setup.sh spark

demo: setup ## Run a pipeline over a few million rows on Spark; a tour without it where there is no Java
	@tools/check_java.sh --polite
	@$(BIN)/python examples/demo.py

check: setup ## Format, lint, types, layers, spelling, public names, links
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/codespell $(SOURCES) docs .ci *.md Makefile pyproject.toml
	$(BIN)/python -m tools.public_names --check
	$(BIN)/python -m tools.python_reference --check
	$(BIN)/python -m tools.module_index --check
	$(BIN)/zensical build --strict --clean
	@tools/check_java.sh
	$(BIN)/python tools/compile_java.py

docs: setup ## Build the documentation as a site, into site/
	$(BIN)/zensical build --strict --clean
	@echo "open site/index.html"

dist: setup ## Build the wheel and the source archive, into dist/
	rm -rf $(DIST)
	$(BIN)/hatchling build -d $(DIST)

test: setup ## Run the quick tests, one or two cases of each, none over ten seconds: without a JVM, and beside them on Spark in one session
	@tools/check_java.sh
	$(BIN)/python tools/run_tests.py quick

test-extended: setup ## Run what `make test` leaves out and CI runs too: more cases, servers, crashes, long histories
	@tools/check_java.sh
	$(BIN)/python tools/run_tests.py extended

test-all: test-all-local test-all-spark ## Run every case of every test, the slow ones too; FRAZIL_FUZZ_SECONDS bounds each fuzzer
	@$(MAKE) --no-print-directory test-sparks SPARKS="4.0 4.1 4.2"

test-all-local: setup ## Run every case of the tests without Spark
	$(BIN)/pytest -q -n auto --dist worksteal -m "not spark"

test-all-spark: setup ## Run every case of the tests on the newest Spark
	@tools/check_java.sh
	$(BIN)/pytest -q -m spark

test-sparks: ## Run the core of the Spark suite on every Spark 4, each in an environment of its own; SPARKS="4.1 4.3" chooses
	@tools/check_java.sh
	@PYTHON="$(PYTHON)" tools/test_sparks.sh $(SPARKS)

test-dbt: ## Run the example project and dbt's own tests of adapters over lakes and with the jar, in environments of their own; write docs/evidence/dbt-tests.md
	@tools/check_java.sh
	@PYTHON="$(PYTHON)" tools/setup.sh dev $(VENV_DBT)
	@PYTHON="$(PYTHON)" tools/setup.sh spark $(VENV_DBT)
	@PYTHON="$(PYTHON)" tools/setup.sh dbt $(VENV_DBT)
	@PYTHON="$(PYTHON)" tools/setup.sh dev $(VENV_DBT_JAR)
	@PYTHON="$(PYTHON)" tools/setup.sh spark-4.1 $(VENV_DBT_JAR)
	@PYTHON="$(PYTHON)" tools/setup.sh dbt $(VENV_DBT_JAR)
	$(VENV_DBT)/bin/pytest -q tests/dbt --junitxml=.dbt-frazil.xml
	-FRAZIL_DBT_ON=jar $(VENV_DBT_JAR)/bin/pytest -q tests/dbt/test_adapter.py --junitxml=.dbt-jar.xml
	$(VENV_DBT)/bin/python -m tests.dbt.dbt_page .dbt-frazil.xml .dbt-jar.xml

test-recipes: setup ## Run the recipes that need more packages: OpenLineage, Great Expectations
	@tools/check_java.sh
	@PYTHON="$(PYTHON)" tools/setup.sh recipes
	$(BIN)/pytest -q tests/unit/lake/test_lineage.py tests/unit/examples tests/spark/test_lineage_on_spark.py

test-interop: setup ## Let every implementation check every other; write docs/evidence/interop.md, docs/evidence/sql-differences.md and, where ICEBERG_DOCS has the pages, docs/evidence/jar-pages.md
	@tools/check_java.sh
	@PYTHON="$(PYTHON)" tools/setup.sh dev $(VENV_INTEROP)
	@PYTHON="$(PYTHON)" tools/setup.sh spark $(VENV_INTEROP)
	@PYTHON="$(PYTHON)" tools/setup.sh interop $(VENV_INTEROP)
	@PYTHON="$(PYTHON)" tools/setup.sh dev $(VENV_SPARK_4_1)
	@PYTHON="$(PYTHON)" tools/setup.sh spark-4.1 $(VENV_SPARK_4_1)
	rm -f .interop-seen
	FRAZIL_INTEROP_SEEN=.interop-seen $(VENV_INTEROP)/bin/pytest -q tests/interop -m "interop and spark"
	FRAZIL_INTEROP_SEEN=.interop-seen $(VENV_INTEROP)/bin/pytest -q tests/interop/test_rest_clients.py
	FRAZIL_INTEROP_SEEN=.interop-seen $(VENV_INTEROP)/bin/pytest -q tests/spark/test_write_interop.py
	FRAZIL_INTEROP_SEEN=.interop-seen $(VENV_INTEROP)/bin/python -m tests.interop.interop_page

test-browser: setup ## Test the console in Chromium, which the system has (apt install chromium), and write its pictures to docs/console
	@PYTHON="$(PYTHON)" tools/setup.sh browser
	FRAZIL_WRITE_PICTURES=1 $(BIN)/pytest -q tests/browser

bench: setup ## Run every benchmark beside its peers, and write docs/evidence/benchmarks.md; FRAZIL_BENCH_SCALE makes it larger or smaller
	@tools/check_java.sh
	@PYTHON="$(PYTHON)" tools/setup.sh dev $(VENV_INTEROP)
	@PYTHON="$(PYTHON)" tools/setup.sh interop $(VENV_INTEROP)
	@PYTHON="$(PYTHON)" tools/setup.sh dev $(VENV_SPARK_4_1)
	@PYTHON="$(PYTHON)" tools/setup.sh spark-4.1 $(VENV_SPARK_4_1)
	@tools/run_bench.sh $(BIN)/python $(VENV_SPARK_4_1)/bin/python

azurite: ## Install Azurite, an emulator of Azure's store, from npm; tests of Azure are skipped where it is missing
	mkdir -p .azurite && cd .azurite && { [ -f package.json ] || echo '{"private": true}' > package.json; } && npm install azurite

new: setup ## Begin a change: make new KIND=procedure NAME=count_rows writes a file, a test that fails and a line in the docs
	@$(BIN)/python -m tools.new "$(KIND)" "$(NAME)"

names: setup ## Write public-names.txt and the pages in docs that are made of code
	$(BIN)/python -m tools.public_names --write
	$(BIN)/python -m tools.procedures_markdown
	$(BIN)/python -m tools.properties_markdown
	$(BIN)/python -m tests.architecture.options_page --write
	$(BIN)/python -m tools.python_reference --write
	$(BIN)/python -m tools.module_index --write

notebook: setup ## Run notebooks/quickstart.ipynb, store what it prints, and write docs/quickstart.md
	@tools/check_java.sh
	$(BIN)/python tools/run_notebook.py --write

fix: setup ## Format, and apply the linter's safe fixes
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

lock: setup ## Resolve requirements/*.lock anew, to the newest versions allowed
	@tools/lock.sh $(BIN)/uv

clean: ## Remove the environments and every cache
	rm -rf $(VENV) .venv-spark-* $(VENV_DBT) $(DIST) site .azurite .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +
