#!/bin/sh
# Builds static, reproducible binaries, and images of them.
#   scripts/images.sh binaries [DIR [PROGRAM...]]    only the binaries, into DIR
#   scripts/images.sh context DIR       the files of every image besides its program, into DIR/root
#   scripts/images.sh check             build the binaries twice, from two folders and
#                                       without the build cache; they have to be equal
#   scripts/images.sh sbom [DIR]        the binaries and a CycloneDX SBOM of each, into DIR
#   scripts/images.sh [TARGET...]       the images waggle and nats, and for places without
#                                       a registry caddy, prometheus and otel
#   scripts/images.sh compose           no image: Compose 2, for .cache/docker
# BASE     the base image; scratch needs no registry (default: the Dockerfile's)
# TAG      tag of the images (default dev)
# VERSION, COMMIT   what "waggle version" says
# CERTS    root certificates of images without a base (default: this machine's)
# CREATED  the time in labels and SBOMs (default: the commit's)
set -eu
cd "$(dirname "$0")/.."

BASE=${BASE:-}
TAG=${TAG:-dev}
CERTS=${CERTS:-/etc/ssl/certs/ca-certificates.crt}
VERSION=${VERSION:-$(git describe --tags --always 2>/dev/null || echo devel)}
COMMIT=${COMMIT:-$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)}
CREATED=${CREATED:-$(TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null || true)}
CADDY=v2.11.9
COMPOSE=v2.40.3
PROMETHEUS=3.7.3 # as docker-compose.yml has it
OTEL=0.139.0
cache=$PWD/.cache
context=$cache/image

# binary DIR MODULE PACKAGE NAME: no paths, times or ids of this machine get into it.
binary() (
	mkdir -p "$1"
	dir=$(cd "$1" && pwd)
	cd "$2"
	CGO_ENABLED=0 GOFLAGS= GOWORK=off go build -trimpath -buildvcs=false -tags grpcnotrace \
		-ldflags "-s -w -buildid= -X main.version=$VERSION -X main.commit=$COMMIT" -o "$dir/$4" "$3"
)

# binaries DIR [PROGRAM...]: GOOS and GOARCH name another platform.
binaries() {
	into=$1
	shift
	[ $# -gt 0 ] || set -- waggle nats-server
	for name in "$@"; do binary "$into" cmd "./$name" "$name"; done
}

# sbom DIR: equal commits give equal files.
sbom() (
	binaries "$1"
	dir=$(cd "$1" && pwd)
	cd deploy/supply
	for name in waggle nats-server; do
		GOFLAGS= GOWORK=off go run . sbom -version "$VERSION" -time "$CREATED" "$dir/$name" >"$dir/$name.cdx.json.new"
		mv "$dir/$name.cdx.json.new" "$dir/$name.cdx.json"
		echo "${1%/}/$name.cdx.json"
	done
)

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

# keep NAME VERSION: builds a program of others by the function build_NAME, once; it takes
# some minutes.
keep() {
	kept=$cache/bin/$1-$2
	[ ! -x "$kept" ] || return 0
	echo "building $1 $2 from the module registry (once, some minutes)" >&2
	mkdir -p "$cache/bin"
	(
		work=$(mktemp -d)
		trap 'rm -rf "$work"' EXIT
		"build_$1" "$2" "$work"
		mv "$work/$1" "$kept"
	)
}

# upstream MODULE@VERSION DIR: the sources of a module, with its own go.mod and go.sum.
# Unlike "go install" this heeds what its go.mod excludes and replaces.
upstream() {
	from=$(cd / && GOFLAGS= GOWORK=off go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
	cp -R "$from" "$2"
	chmod -R u+w "$2"
}

# static DIR PACKAGE OUT LDFLAGS: at the lowest priority that still gets on.
static() (
	cd "$1"
	CGO_ENABLED=0 GOFLAGS= GOWORK=off nice -n 10 go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= $4" -o "$3" "$2"
)

build_caddy() {
	CGO_ENABLED=0 GOFLAGS=-trimpath GOBIN="$2" go install -ldflags '-s -w -buildid=' \
		"github.com/caddyserver/caddy/v2/cmd/caddy@$1"
}

build_compose() {
	upstream "github.com/docker/compose/v2@$1" "$2/tree"
	static "$2/tree" ./cmd "$2/compose" "-X github.com/docker/compose/v2/internal.Version=$1"
}

# Prometheus and promtool. DNS is the only service discovery, because the others are clients of
# twenty clouds. The web pages are left out, because they are not in Go modules; the API works.
# Version 3.7.3 is v0.307.3 as a module.
prometheus_tree() {
	upstream "github.com/prometheus/prometheus@$(echo "$1" | awk -F. '{printf "v0.%d%02d.%d", $1, $2, $3}')" "$2/tree"
	printf 'package plugins\n\nimport _ "github.com/prometheus/prometheus/discovery/dns"\n' >"$2/tree/plugins/plugins.go"
}

build_prometheus() {
	prometheus_tree "$1" "$2"
	static "$2/tree" ./cmd/prometheus "$2/prometheus" "-X github.com/prometheus/common/version.Version=$1"
}

build_promtool() {
	prometheus_tree "$1" "$2"
	static "$2/tree" ./cmd/promtool "$2/promtool" "-X github.com/prometheus/common/version.Version=$1"
}

# The collector's own builder makes it, of the parts that our configuration names.
build_otel() {
	cat >"$2/parts.yaml" <<-YAML
		dist: {module: otelcol, name: otel, version: $1, output_path: $2/tree}
		receivers: [{gomod: go.opentelemetry.io/collector/receiver/otlpreceiver v$1}]
		processors: [{gomod: go.opentelemetry.io/collector/processor/batchprocessor v$1}]
		exporters: [{gomod: go.opentelemetry.io/collector/exporter/debugexporter v$1}]
		providers:
		  - gomod: go.opentelemetry.io/collector/confmap/provider/envprovider v1.45.0
		  - gomod: go.opentelemetry.io/collector/confmap/provider/fileprovider v1.45.0
	YAML
	(cd "$2" && GOFLAGS= GOWORK=off go run "go.opentelemetry.io/collector/cmd/builder@v$1" --skip-compilation --config parts.yaml)
	static "$2/tree" . "$2/otel" ''
}

# The files of every image besides its program: mount points for volumes, writable for the user
# of the container, and root certificates if the base lacks them.
root() { # root DIR
	rm -rf "$1"
	mkdir -p "$1/data" "$1/workspace" "$1/tmp" "$1/prometheus" "$1/etc/ssl/certs"
	chmod 1777 "$1/data" "$1/workspace" "$1/tmp" "$1/prometheus"
	if [ "$BASE" = scratch ] && [ -f "$CERTS" ]; then
		cp "$CERTS" "$1/etc/ssl/certs/ca-certificates.crt"
	fi
}

# image STAGE NAME: builders before BuildKit build every stage above the one that is
# wanted, so they are shown no other.
image() {
	awk -v stage="$1" '/^FROM / { seen = 1; mine = $NF == stage } !seen || mine' deploy/docker/Dockerfile >"$context/Dockerfile"
	# shellcheck disable=SC2086 # one argument or none
	docker build --quiet --target "$1" ${BASE:+--build-arg BASE=$BASE} \
		--build-arg VERSION="$VERSION" --build-arg COMMIT="$COMMIT" --build-arg CREATED="$CREATED" -t "$2:$TAG" "$context" >/dev/null
	echo "$2:$TAG"
}

case "${1:-}" in
binaries) shift && binaries "${@:-bin}" && exit ;;
context) BASE=scratch && root "$2/root" && exit ;;
sbom) sbom "${2:-bin/image}" && exit ;;
check) check && exit ;;
esac

[ $# -gt 0 ] || set -- waggle nats
mkdir -p "$context"
root "$context/root"
for target in "$@"; do
	case "$target" in
	waggle)
		binary "$context" cmd ./waggle waggle
		image waggle waggle
		;;
	nats)
		binary "$context" cmd ./nats-server nats-server
		image nats waggle-nats
		;;
	caddy)
		keep caddy $CADDY
		cp "$kept" "$context/caddy"
		image caddy waggle-caddy
		;;
	prometheus)
		keep prometheus $PROMETHEUS
		cp "$kept" "$context/prometheus"
		keep promtool $PROMETHEUS
		cp "$kept" "$context/promtool"
		image prometheus waggle-prometheus
		;;
	otel)
		keep otel $OTEL
		cp "$kept" "$context/otelcol"
		image otel waggle-otel
		;;
	compose)
		keep compose $COMPOSE
		mkdir -p "$cache/docker/cli-plugins"
		ln -sf "$kept" "$cache/docker/cli-plugins/docker-compose"
		;;
	*)
		echo "there is no image $target" >&2
		exit 2
		;;
	esac
done
