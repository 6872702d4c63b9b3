#!/usr/bin/env bash
# Say whether a Java that Spark can use is here. With --polite, a missing Java is a notice and not a failure.
set -euo pipefail

needed=17
java=java
if [[ -n ${JAVA_HOME:-} && -x $JAVA_HOME/bin/java ]]; then
    java=$JAVA_HOME/bin/java
fi

fail() {
    printf 'Java: %s Spark needs Java %s or newer.\n' "$1" "$needed" >&2
    printf '      On Debian or Ubuntu: apt install openjdk-%s-jre-headless. Elsewhere, set JAVA_HOME.\n' "$needed" >&2
    if [[ ${2:-} == --polite ]]; then
        printf '      What needs no Spark works without it.\n' >&2
        exit 0
    fi
    exit 1
}

if ! text=$("$java" -version 2>&1); then
    fail "not found." "${1:-}"
fi
# `openjdk version "17.0.15" 2025-04-15`; before Java 9 the major version came second: "1.8.0_402".
version=$(sed -n 's/.*version "\([^"]*\)".*/\1/p' <<<"$text" | head -n 1)
major=${version#1.}
major=${major%%[!0-9]*}
if [[ -z $major || $major -lt $needed ]]; then
    fail "found ${version:-an unknown version}." "${1:-}"
fi
printf 'Java: %s\n' "$version" >&2
