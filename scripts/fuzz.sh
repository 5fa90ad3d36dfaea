#!/usr/bin/env bash
# Runs every fuzz target of every package, FUZZTIME each. A crasher is written to the package's testdata/fuzz and fails.
set -euo pipefail

time=${FUZZTIME:-30s}
targets=$(grep -r --include='*_test.go' -o '^func Fuzz[A-Za-z0-9_]*' . | sed 's|/[^/]*:func | |' | sort)
if [ -z "$targets" ]; then
	echo "fuzz: no targets" >&2
	exit 1
fi
while read -r package target; do
	printf 'fuzz: %s %s for %s\n' "$package" "$target" "$time"
	go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package"
done <<<"$targets"
