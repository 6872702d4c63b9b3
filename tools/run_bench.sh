#!/usr/bin/env bash
# Run each benchmark, keep what it prints and measures in bench/results/, and make docs/benchmarks.md of it.
# FRAZIL_BENCH_SCALE makes the tables on Spark larger or smaller; what runs beside Iceberg's jar has its own environment.
# A benchmark that fails, or misses what it promises, does not stop the others: the last line names it.
set -uo pipefail
cd "$(dirname "$0")/.."

python=${1:-.venv/bin/python}
beside_jar=${2:-$python}
export FRAZIL_BENCH_RESULTS=bench/results
mkdir -p bench/results
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
missed=()
run() {
    printf '\n== %s\n' "$2"
    if ! "$1" -m "bench.$2" 2>"$errors" | tee "bench/results/$2.txt"; then
        tail -5 "$errors" >&2
        missed+=("$2")
    fi
}
for name in import_time load_table_metadata decode_manifest write_manifest plan_scan metadata_tables local_scan \
    commit_cost sql_names terminal_start spark_read spark_append spark_merge spark_memory rewrite_files; do
    run "$python" "$name"
done
for name in engines tpch; do
    run "$beside_jar" "$name"
done
"$python" -m bench.benchmarks_page
((${#missed[@]} == 0)) || printf 'failed, or short of a promise: %s\n' "${missed[*]}"
