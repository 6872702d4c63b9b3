#!/usr/bin/env bash
# Resolve pyproject.toml into hash-pinned locks that hold for Python 3.11 to 3.14 on every platform.
# The locks name packages, versions and hashes only: where packages come from is each machine's own setting.
set -euo pipefail
cd "$(dirname "$0")/.."

uv=${1:-.venv/bin/uv}
compile() {
    local target=$1
    shift
    "$uv" pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-emit-find-links --no-header --output-file "$target" "$@"
}

compile requirements/dev.lock pyproject.toml --group build --group test --group check --group docs --group bench --group lock
# Spark is apart because it is large and only few targets need it; versions shared with dev.lock are the same.
compile requirements/spark.lock pyproject.toml --extra spark --constraint requirements/dev.lock
# Peers for the matrix of implementations, in an environment of its own: DuckDB's extensions as packages end at 1.5.
constraint=$(mktemp)
trap 'rm -f "$constraint"' EXIT
sed '/^duckdb==/,/^[^ ]/{/^duckdb==/d;/^ /d}' requirements/dev.lock >"$constraint"
compile requirements/interop.lock pyproject.toml --group interop --constraint "$constraint"
# Every other Spark 4, each for an environment of its own; the newest is in spark.lock.
for spark in 4.0 4.1 4.2; do
    compile "requirements/spark-$spark.lock" pyproject.toml --extra spark --constraint requirements/dev.lock \
        --constraint "requirements/spark-$spark.in"
done
# What recipes use, added to the same environment.
compile requirements/recipes.lock pyproject.toml --group recipes --constraint requirements/dev.lock
# The driver of a browser, for the tests of the console.
compile requirements/browser.lock pyproject.toml --group browser --constraint requirements/dev.lock
# dbt, in an environment of its own: it pins older versions of what dev.lock has.
compile requirements/dbt.lock requirements/dbt.in
