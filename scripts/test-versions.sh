#!/usr/bin/env bash
# Runs the tests of the two protocols, and the built bridge from end to end, once a version of PostgreSQL and of
# nats-server. Prints one line a version; what failed is printed whole. ONLY='13 nats-2.9.10' chooses some.
set -euo pipefail
cd "$(dirname "$0")/.."

cache=$(scripts/versions.sh)
logs=$cache/logs
mkdir -p "$logs"

# What runs: a package, and the tests of it. There is no PostGIS beside these servers, so nothing here needs features.
faults='TestFaultsLoseNothing/fault/^(kill_-9_bridge|Postgres_crash_under_a_long_transaction|Postgres_restarted|Postgres_stopped_while_NATS_is_down|walsender_terminated|kill_-9_nats-server)$'
for_postgres=(
	"./decoder ./event -run Session"
	"./slot"
	"./test/versions"
	"./test/faults -run $faults"
)
# These are about what the version does not have: a publication of a schema came with 15.
since_15='TestTableThatIsHeldTwiceMayLoseOne'
# These configure a nats-server in their own process; they are the client library's ways to log in, and of one version.
own_server='TestEveryWayToAuthenticate|TestCredentialsFileAuthenticates|TestContextBringsServersAndCredentials|TestDomainAndInboxPrefixAreUsed|TestTLS|TestMissingPermissionIsReported|TestWithdrawnCredentialsAreReported|TestServerWithoutJetStreamSaysWhatToDo'
for_nats=(
	"./publish -skip $own_server"
	"./test/versions"
	"./test/faults -run $faults"
)

failed=0

# run NAME LINE PACKAGES-AND-FLAGS...
run() {
	local name=$1 line=$2 log=$logs/$1.log start=$SECONDS status=0 selection
	shift 2
	: >"$log"
	for selection in "$@"; do
		# shellcheck disable=SC2086 # a selection is several words
		go test -count=1 -timeout 8m -v $selection >>"$log" 2>&1 || status=1
	done
	local passed skipped
	passed=$(grep -cE '^ *--- PASS' "$log" || true)
	skipped=$(grep -cE '^ *--- SKIP' "$log" || true)
	if [ "$skipped" -gt 0 ]; then
		status=1
		line="$line, $skipped SKIPPED"
	fi
	printf '%-46s %4d tests  %4d s  %s\n' "$line" "$passed" "$((SECONDS - start))" "$([ "$status" -eq 0 ] && echo ok || echo FAILED)"
	if [ "$status" -ne 0 ]; then
		failed=1
		grep -E '^ *--- (FAIL|SKIP)|^(FAIL|panic)|_test\.go:[0-9]+:' "$log" || true
		printf 'the whole log is in %s\n' "$log"
	fi
}

wanted() { [ -z "${ONLY:-}" ] || [[ " $ONLY " == *" $1 "* ]]; }

ours=$(go list -m -f '{{.Version}}' github.com/nats-io/nats-server/v2)
for dir in "$cache"/postgres-*; do
	grep -qF " ${dir##*/postgres-} " scripts/versions.txt || continue # pinned once, and no more
	bin=$dir/native/bin
	version=$("$bin/postgres" --version | sed 's/.* //')
	if wanted "${version%%.*}"; then
		selected=("${for_postgres[@]}")
		if [ "${version%%.*}" -lt 15 ]; then
			selected=("${selected[@]/#.\/slot/./slot -skip $since_15}")
		fi
		POSTGRES_BIN=$bin run "postgres-$version" "PostgreSQL $version, nats-server ${ours#v}" "${selected[@]}"
	fi
done
for bin in "$cache"/nats-server-*; do
	version=${bin##*nats-server-}
	grep -qx "nats-server $version" scripts/versions.txt || continue
	if wanted "nats-$version"; then
		NATS_SERVER_BIN=$bin/nats-server run "nats-$version" "PostgreSQL as installed, nats-server $version" "${for_nats[@]}"
	fi
done
exit "$failed"
