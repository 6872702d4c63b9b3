#!/usr/bin/env bash
# Run each benchmark and keep what it prints in bench/results/<name>.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
export PYTHONPATH=. # benchmarks import each other

python=${1:-.venv/bin/python}
mkdir -p bench/results
for script in bench/*.py; do
    name=$(basename "$script" .py)
    printf '\n== %s\n' "$name"
    "$python" "$script" | tee "bench/results/$name.txt"
done
