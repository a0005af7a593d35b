#!/bin/sh
# Backup and restore of the fleet of docker-compose.yml.
#   scripts/backup.sh save [DIR]      copies all streams into DIR while the fleet works;
#                                     DIR defaults to backups/ and the time
#   scripts/backup.sh restore DIR     starts the NATS servers alone and puts the streams into
#                                     them; refused if they have any, or if services run
# COMPOSE   docker compose (default) or docker-compose
set -eu

compose=${COMPOSE:-docker compose}
# The container runs as you, so that the files of the backup are yours.
me=$(id -u):$(id -g)

# mounted DIR: its absolute name, which the engine needs.
mounted() { (cd "$1" && pwd); }

save() {
	dir=${1:-backups/$(date -u +%Y-%m-%dT%H%M%SZ)}
	mkdir -p "$dir"
	chmod 700 "$dir"
	$compose run --rm -T --no-deps --user "$me" --volume "$(mounted "$dir"):/backup" operator backup --out /backup
	echo "the backup is in $dir; keep a copy of it and of ./secrets on another machine"
}

restore() {
	[ -f "${1:-}/manifest.json" ] || {
		echo "say FROM=DIR, the folder of a backup: one that has a manifest.json" >&2
		exit 2
	}
	if [ -n "$($compose ps -q gateway session pipeline worker task team tools)" ]; then
		echo 'services run, or have run: end them with "make down" first' >&2
		exit 1
	fi
	$compose run --rm -T --user "$me" --volume "$(mounted "$1"):/backup:ro" bootstrap restore --from /backup
}

case "${1:-}" in
save) save "${2:-}" ;;
restore) restore "${2:-}" ;;
*)
	sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
