#!/usr/bin/env bash
# Run each benchmark, keep what it prints and measures in bench/results/, and make docs/evidence/benchmarks.md of it.
# FRAZIL_BENCH_SCALE makes all tables larger or smaller; what runs beside Iceberg's jar has its own environment.
# A benchmark that fails, or misses what it promises, does not stop the others: the last line names it.
# What an earlier run left is removed first, so that the page is of one run.
set -uo pipefail
cd "$(dirname "$0")/.."

python=${1:-.venv/bin/python}
beside_jar=${2:-$python}
export FRAZIL_BENCH_RESULTS=${FRAZIL_BENCH_RESULTS:-bench/results}
kept=$FRAZIL_BENCH_RESULTS
mkdir -p "$kept"
rm -f "$kept"/*.json "$kept"/*.txt
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
missed=()
run() {
    local started=$SECONDS
    printf '\n== %s\n' "$2"
    if ! "$1" -m "bench.$2" 2>"$errors" | tee "$kept/$2.txt"; then
        tail -5 "$errors" >&2
        missed+=("$2")
    fi
    printf '%s %d\n' "$2" $((SECONDS - started)) >>"$kept/seconds.txt"
    printf -- '-- %s took %d s\n' "$2" $((SECONDS - started))
}
for name in import_time load_table_metadata decode_manifest write_manifest plan_scan metadata_tables local_scan local_sql local_tpc odd_shapes local_changes \
    commit_cost rest_server sql_names terminal_start console spark_read spark_append spark_merge spark_memory rewrite_files; do
    run "$python" "$name"
done
for name in engines tpch stream_backlog stream_latency stream_sink; do
    run "$beside_jar" "$name"
done
"$python" -m bench.benchmarks_page --results "$kept" --into "${FRAZIL_BENCH_PAGE:-docs/evidence}"
printf '\nall benchmarks took %d s\n' "$SECONDS"
((${#missed[@]} == 0)) || printf 'failed, or short of a promise: %s\n' "${missed[*]}"
