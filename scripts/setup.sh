#!/usr/bin/env bash
# Installs what building and testing need beside Go: a C compiler, PostgreSQL and its PostGIS extension. Says what it
# does, does nothing where all is there, and may be run any number of times.
set -euo pipefail

say() { printf 'setup: %s\n' "$*"; }

# The folder of PostgreSQL's programs: POSTGRES_BIN, else the newest that is installed.
postgres_bin() {
	local dir
	while read -r dir; do
		if [ -x "$dir/initdb" ] && [ -x "$dir/postgres" ]; then
			printf '%s\n' "$dir"
			return
		fi
	done < <(places)
}

places() {
	if [ -n "${POSTGRES_BIN:-}" ]; then
		printf '%s\n' "$POSTGRES_BIN"
		return
	fi
	ls -d /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql@*/bin /usr/local/opt/postgresql@*/bin \
		/Applications/Postgres.app/Contents/Versions/*/bin /usr/local/pgsql/bin 2>/dev/null | sort -rV
	if command -v initdb >/dev/null; then
		dirname "$(command -v initdb)"
	fi
}

has_postgis() {
	local share
	share=$("$1/pg_config" --sharedir 2>/dev/null) && [ -e "$share/extension/postgis.control" ]
}

# The version that the distribution's own package "postgresql" stands for.
offered_version() {
	apt-cache depends postgresql 2>/dev/null | sed -n 's/.*Depends: postgresql-\([0-9][0-9]*\)$/\1/p' | head -n 1
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		say "run as root, or install sudo: $*" >&2
		exit 1
	fi
}

# Debian makes and starts a cluster on port 5432 when it installs a server; we need only the programs.
without_default_cluster() {
	local conf=/etc/postgresql-common/createcluster.d/tidegate-setup.conf
	as_root mkdir -p "${conf%/*}"
	echo 'create_main_cluster = false' | as_root tee "$conf" >/dev/null
	local status=0
	"$@" || status=$?
	as_root rm -f "$conf"
	return "$status"
}

install_packages() {
	say "installing $*"
	without_default_cluster as_root env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "$@"
}

tell() {
	say "missing: ${missing[*]}" >&2
	case "$(uname -s)" in
	Darwin) say "run: xcode-select --install; brew install postgresql@17 postgis" >&2 ;;
	*) say "install a C compiler, PostgreSQL 13 or newer (server) and PostGIS 3.3 or newer with your package manager" >&2 ;;
	esac
	say "where PostgreSQL is in an unusual place, set POSTGRES_BIN to the folder of initdb and postgres" >&2
	exit 1
}

missing=()
command -v cc >/dev/null || command -v gcc >/dev/null || missing+=(compiler)
bin=$(postgres_bin)
if [ -z "$bin" ]; then
	missing+=(PostgreSQL PostGIS)
elif ! has_postgis "$bin"; then
	missing+=(PostGIS)
fi

if [ "${#missing[@]}" -eq 0 ]; then
	say "nothing to do: C compiler, PostgreSQL and PostGIS in $bin"
	exit 0
fi
if ! command -v apt-get >/dev/null || [ -n "${POSTGRES_BIN:-}" ]; then
	tell
fi

say "missing: ${missing[*]}"
say "reading the package lists"
as_root apt-get update --quiet=2
packages=()
for what in "${missing[@]}"; do
	case $what in
	compiler) packages+=(gcc libc6-dev) ;;
	PostgreSQL) packages+=("postgresql-$(offered_version)") ;;
	PostGIS)
		version=$(basename "$(dirname "${bin:-/x/$(offered_version)/bin}")")
		packages+=("postgresql-$version-postgis-3")
		;;
	esac
done
install_packages "${packages[@]}"

bin=$(postgres_bin)
if [ -z "$bin" ] || ! has_postgis "$bin"; then
	say "PostgreSQL or PostGIS is still missing after the installation" >&2
	exit 1
fi
say "done: PostgreSQL and PostGIS in $bin"
