#!/bin/sh
# Builds static, reproducible binaries, and images of them.
#   scripts/images.sh binaries [DIR]    only the binaries, into DIR
#   scripts/images.sh check             build the binaries twice, from two folders and
#                                       without the build cache; they have to be equal
#   scripts/images.sh [TARGET...]       the images waggle and nats, and caddy for tests
# BASE     the base image; scratch needs no registry (default: the Dockerfile's)
# TAG      tag of the images (default dev)
# VERSION, COMMIT   what "waggle version" says
set -eu
cd "$(dirname "$0")/.."

BASE=${BASE:-}
TAG=${TAG:-dev}
VERSION=${VERSION:-$(git describe --tags --always 2>/dev/null || echo devel)}
COMMIT=${COMMIT:-$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)}
CADDY=v2.11.9
cache=$PWD/.cache
context=$cache/image

# binary DIR MODULE PACKAGE NAME: no paths, times or ids of this machine get into it.
binary() (
	mkdir -p "$1"
	dir=$(cd "$1" && pwd)
	cd "$2"
	CGO_ENABLED=0 GOFLAGS= GOWORK=off go build -trimpath -buildvcs=false \
		-ldflags "-s -w -buildid= -X main.version=$VERSION -X main.commit=$COMMIT" -o "$dir/$4" "$3"
)

binaries() {
	binary "$1" cmd ./waggle waggle
	binary "$1" cmd ./nats-server nats-server
}

# The second tree has another name, another age and no cache in common.
check() {
	work=$(mktemp -d)
	trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
	binaries "$work/first"
	git ls-files -z | xargs -0 tar -cf - | (mkdir "$work/tree" && tar -C "$work/tree" -xf -)
	(cd "$work/tree" && GOCACHE="$work/cache" VERSION=$VERSION COMMIT=$COMMIT scripts/images.sh binaries "$work/second")
	for name in waggle nats-server; do
		cmp "$work/first/$name" "$work/second/$name"
		sha256sum "$work/first/$name" | sed "s| .*|  $name|"
	done
	echo 'two builds gave the same bytes'
}

# Caddy for tests. It takes a few minutes once, and is kept by its version.
caddy() {
	kept=$cache/bin/caddy-$CADDY
	if [ ! -x "$kept" ]; then
		mkdir -p "$cache/caddy"
		CGO_ENABLED=0 GOFLAGS=-trimpath GOBIN="$cache/caddy" go install -ldflags '-s -w -buildid=' \
			"github.com/caddyserver/caddy/v2/cmd/caddy@$CADDY"
		mkdir -p "$cache/bin"
		mv "$cache/caddy/caddy" "$kept"
	fi
	cp "$kept" "$context/caddy"
}

# What every image has besides its program: places that volumes are mounted over, which
# whoever the container runs as may write to, and root certificates if the base has none.
root() {
	rm -rf "$context/root"
	mkdir -p "$context/root/data" "$context/root/workspace" "$context/root/tmp" "$context/root/etc/ssl/certs"
	chmod 1777 "$context/root/data" "$context/root/workspace" "$context/root/tmp"
	if [ "$BASE" = scratch ] && [ -f /etc/ssl/certs/ca-certificates.crt ]; then
		cp /etc/ssl/certs/ca-certificates.crt "$context/root/etc/ssl/certs/"
	fi
}

image() {
	# shellcheck disable=SC2086 # one argument or none
	docker build --quiet --target "$1" ${BASE:+--build-arg BASE=$BASE} -t "$2:$TAG" "$context" >/dev/null
	echo "$2:$TAG"
}

case "${1:-}" in
binaries) binaries "${2:-bin}" && exit ;;
check) check && exit ;;
esac

[ $# -gt 0 ] || set -- waggle nats
mkdir -p "$context"
cp deploy/docker/Dockerfile "$context/Dockerfile"
root
binaries "$context"
for target in "$@"; do
	case "$target" in
	waggle) image waggle waggle ;;
	nats) image nats waggle-nats ;;
	caddy)
		caddy
		image caddy waggle-caddy
		;;
	*)
		echo "there is no image $target" >&2
		exit 2
		;;
	esac
done
