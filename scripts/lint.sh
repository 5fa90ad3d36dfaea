#!/usr/bin/env bash
# Checks what must hold before a commit. LINT is golangci-lint.
set -euo pipefail

step() { printf '%s\n' "lint: $*"; }

step "go.mod is tidy"
go mod tidy -diff
go -C tools mod tidy -diff

step "format and rules"
"$LINT" run ./...

step "vet"
go vet ./...

step "generated pages are fresh"
go test -run 'IsFresh$' ./internal/config ./cmd/tidegate
