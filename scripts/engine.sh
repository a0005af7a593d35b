#!/bin/sh
# Makes sure that a Docker engine answers: installs Debian's and starts it if need be.
# For machines whose packages are Debian's, as root; everybody else brings an engine.
#   scripts/engine.sh         engine and Compose
#   scripts/engine.sh stop    end the engine that this script has started
set -eu

run=/var/run/waggle-engine
log=/var/log/waggle-engine.log

if [ "${1:-}" = stop ]; then
	if [ -f "$run.pid" ]; then
		kill "$(cat "$run.pid")" 2>/dev/null || true
		rm -f "$run.pid"
	fi
	exit 0
fi

missing=
command -v dockerd >/dev/null || missing="docker.io iptables"
docker compose version >/dev/null 2>&1 || command -v docker-compose >/dev/null || missing="$missing docker-compose"
if [ -n "$missing" ] && ! docker info >/dev/null 2>&1; then
	apt-get update -q
	# shellcheck disable=SC2086 # a list
	DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
fi
docker info >/dev/null 2>&1 && exit 0

# Without an init system the engine does not run yet. It outlives this script, so it must not
# inherit open files: a lock, for instance.
(
	exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
	exec setsid dockerd
) >"$log" 2>&1 </dev/null &
echo $! >"$run.pid"
for _ in $(seq 60); do
	docker info >/dev/null 2>&1 && exit 0
	sleep 1
done
echo "the Docker engine does not answer; $log ends with:" >&2
tail -n 20 "$log" >&2
exit 1
