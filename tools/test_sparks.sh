#!/usr/bin/env bash
# Run the core of the Spark suite on each Spark that is named, in .venv-spark-<version>: `tools/test_sparks.sh 4.0 4.2`.
# The newest Spark is the one of .venv, where the whole suite runs.
set -euo pipefail
cd "$(dirname "$0")/.."

core=(test_nothing_replaced test_inside_spark test_sql_session test_sql_cases test_sql_rows test_source test_session_builder test_write_rows
    test_writer_options test_read_deletes test_read_types test_metadata_columns test_write_conflicts test_maintain_on_spark test_procedures
    test_write_jobs test_stream_source test_stream_sink test_change_feeds test_cancelled test_lakes_in_a_session
    test_rules_of_spark test_tables_that_go test_pandas_on_spark)
files=()
for name in "${core[@]}"; do
    [[ -f tests/spark/$name.py ]] && files+=("tests/spark/$name.py")
done

failed=()
for spark in "$@"; do
    venv=.venv-spark-$spark
    if [[ -f requirements/spark-$spark.lock ]]; then
        tools/setup.sh dev "$venv"
        tools/setup.sh "spark-$spark" "$venv"
    else
        venv=.venv
        tools/setup.sh dev
        tools/setup.sh spark
    fi
    found=$("$venv/bin/python" -c 'import pyspark; print(pyspark.__version__)')
    [[ $found == "$spark".* ]] || { printf '%s has Spark %s, not %s\n' "$venv" "$found" "$spark" >&2; exit 1; }
    printf 'Spark %s\n' "$found"
    "$venv/bin/python" tools/compile_java.py || failed+=("$spark")
    "$venv/bin/pytest" -q -n0 -m "spark and not slow" "${files[@]}" || failed+=("$spark")
done
[[ ${#failed[@]} == 0 ]] || { printf 'failed on Spark %s\n' "${failed[*]}" >&2; exit 1; }
