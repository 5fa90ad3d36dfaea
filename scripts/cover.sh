#!/usr/bin/env bash
# Runs the tests with coverage, shows each package's, and fails where the code that decides what is lost is below LEAST
# percent. A package's figure counts its own tests only.
set -euo pipefail

least=${LEAST:-95}
profile=coverage.out

go test -timeout 12m -coverprofile="$profile" ./...
awk -v least="$least" '
	BEGIN {
		split("decoder event router slot/position.go", want, " ")
		for (i in want) core[want[i]] = 1
	}
	NR > 1 {
		file = $1
		sub(/:[^:]*$/, "", file)
		sub(/^github\.com\/tidegate-cdc\/tidegate\//, "", file)
		package = file
		sub(/\/[^\/]*$/, "", package)
		count(package)
		if (file in core) count(file)
	}
	function count(name) {
		all[name] += $2
		if ($3 > 0) covered[name] += $2
	}
	END {
		for (name in all)
			printf "%-28s %6.1f %%%s\n", name, 100 * covered[name] / all[name], name in core ? "  (at least " least " %)" : "" | "sort"
		close("sort")
		for (name in core) {
			percent = all[name] ? 100 * covered[name] / all[name] : 0
			if (percent < least) {
				printf "cover: %s has %.1f %%, wants at least %d %%\n", name, percent, least
				failed = 1
			}
		}
		exit failed
	}
' "$profile"
