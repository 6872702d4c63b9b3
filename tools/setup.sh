#!/usr/bin/env bash
# Make .venv at the root and install one locked set of packages into it: `tools/setup.sh dev` or `tools/setup.sh spark`.
# Another environment can be named: `tools/setup.sh spark-4.1 .venv-spark-4.1`.
# A stamp in it holds a hash of what was installed, so a second run does nothing until the lock changes.
set -euo pipefail
cd "$(dirname "$0")/.."

set_name=${1:?usage: tools/setup.sh dev|spark|interop|browser|recipes|spark-4.1 [environment]}
venv=${2:-.venv}
lock=requirements/$set_name.lock
stamp=$venv/.installed-$set_name
inputs=("$lock" pyproject.toml tools/setup.sh)

say() { printf 'setup: %s\n' "$*" >&2; }

find_python() {
    local candidate
    for candidate in ${PYTHON:+"$PYTHON"} python3 python3.14 python3.13 python3.12 python3.11; do
        # A name on PATH may be a shim for a version that is not there, so run it rather than look for it.
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    say "no Python 3.11, 3.12, 3.13 or 3.14 on PATH."
    say "On Debian or Ubuntu: apt install python3 python3-venv. Or name one: make setup PYTHON=/path/to/python3"
    return 1
}

# The hook that checks titles of commits, unless this is no clone or there is another one.
hook=$(git rev-parse --git-path hooks/commit-msg 2>/dev/null || true)
if [[ -n $hook && ! -e $hook ]]; then
    mkdir -p "$(dirname "$hook")"
    cp tools/hooks/commit-msg "$hook"
fi

wanted=$(cat "${inputs[@]}" | cksum)
if [[ -x $venv/bin/python && -f $stamp && $(cat "$stamp") == "$wanted" ]]; then
    exit 0
fi

if [[ ! -x $venv/bin/python ]]; then
    python=$(find_python)
    say "making $venv with $("$python" --version)"
    if ! "$python" -m venv "$venv"; then
        rm -rf "$venv"
        say "$python cannot make a virtual environment. On Debian or Ubuntu: apt install python3-venv"
        exit 1
    fi
fi

pip=("$venv/bin/python" -m pip --disable-pip-version-check --quiet)
say "installing $lock"
# --no-build-isolation: the few packages that are built from source use the locked build tools, not the newest ones.
"${pip[@]}" install --require-hashes --no-deps --no-build-isolation -r "$lock"
if [[ $set_name == dev ]]; then
    "${pip[@]}" install --no-deps --no-build-isolation -e .
fi
printf '%s\n' "$wanted" >"$stamp"
