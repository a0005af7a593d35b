#!/usr/bin/env bash
# Checks dist/ as "make release" made it: a second build in another folder has the same bytes, and everything that this
# machine can run is installed and runs. Needs root for package managers and chroot, and what scripts/release-tools.sh
# installs.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
dist=${DIST:-$root/dist}
made=$root/.cache/release # tools of the release
python=${PYTHON:-/usr/bin/python3}
work=$(mktemp -d)
background=()
finish() {
	for pid in "${background[@]}"; do kill "$pid" 2>/dev/null || true; done
	chmod -R u+w "$work"
	rm -rf "$work"
}
trap finish EXIT
export GOFLAGS='' GOWORK=off LC_ALL=C

version=$("$made/release" version)
[[ $(go env GOHOSTOS) == linux ]] || { echo 'the check needs Linux' >&2; exit 1; }
arch=$(go env GOHOSTARCH)

ok() { printf 'ok    %s\n' "$*"; }
differs() {
	echo "FAIL  $*" >&2
	exit 1
}
says() { # says TEXT COMMAND...: the output contains the text
	local text=$1 out
	shift
	out=$("$@" 2>&1) || differs "$* failed: ${out:0:1000}"
	[[ $out == *"$text"* ]] || differs "$* says: ${out:0:1000}"
}
awaited() { # awaited FILE EXPRESSION: the first match in a log that another process writes
	local found
	until found=$(grep -om1 -- "$2" "$1" 2>/dev/null); do kill -0 "${background[-1]}" 2>/dev/null || differs "$(cat "$1")"; sleep 0.1; done
	echo "$found"
}

second_build() {
	git clone -q "$root" "$work/elsewhere/second"
	mkdir -p "$work/elsewhere/second/.cache/release"
	[[ ! -f $made/key.pem ]] || cp "$made/key.pem" "$work/elsewhere/second/.cache/release/"
	DIST=$work/again "$work/elsewhere/second/scripts/release.sh" >"$work/second.log" 2>&1 || differs "the second build: $(tail -n 20 "$work/second.log")"
	diff -r "$dist" "$work/again" || differs 'two builds differ'
	ok "two builds have the same $(find "$dist" -type f | wc -l) files"
}

signatures() {
	(cd "$dist" && sha256sum --quiet -c checksums.txt)
	"$python" -m http.server --bind 127.0.0.1 --directory "$dist" 0 >"$work/http.log" 2>&1 &
	background+=($!)
	local address
	address=http://127.0.0.1:$(PYTHONUNBUFFERED=1 awaited "$work/http.log" 'port [0-9]*' | cut -d' ' -f2)
	mkdir "$work/home"
	HOME=$work/home WAGGLE_INSTALL_DIR=$work/bin WAGGLE_DOWNLOAD_URL=$address sh "$dist/install.sh" >"$work/install.log" || differs "$(cat "$work/install.log")"
	says "waggle v$version (commit" "$work/bin/waggle" version
	ok 'install.sh verified, installed and ran the program'
}

platforms() {
	says "v$version" qemu-aarch64-static "$made/bin/linux-arm64/waggle" version
	says 'linux/arm64' qemu-aarch64-static "$made/bin/linux-arm64/waggle" version
	for target in darwin/amd64 darwin/arm64; do
		for program in "$made/bin/${target/\//-}"/*; do
			says "GOOS=${target%/*}" go version -m "$program"
			says "GOARCH=${target#*/}" go version -m "$program"
			says 'CGO_ENABLED=0' go version -m "$program"
		done
	done
	ok 'the program for arm64 runs in qemu; those for macOS need no library of C'
}

system_packages() {
	mkdir -p "$work/deb/var/lib/dpkg/"{info,updates} "$work/rpm"
	touch "$work/deb/var/lib/dpkg/status"
	dpkg --root="$work/deb" -i "$dist/waggle_${version}_linux_$arch.deb" >"$work/dpkg.log" 2>&1 || differs "$(cat "$work/dpkg.log")"
	says "v$version" chroot "$work/deb" /usr/bin/waggle version
	says 'ok installed' dpkg-query --root="$work/deb" -W -f '${Status}' waggle
	rpm --root "$work/rpm" --initdb
	rpm --root "$work/rpm" -i --nodeps "$dist/waggle_${version}_linux_$arch.rpm" 2>"$work/rpm.log" || differs "$(cat "$work/rpm.log")"
	says "v$version" chroot "$work/rpm" /usr/bin/waggle version
	says "waggle-$version" rpm --root "$work/rpm" -q waggle
	for shell in deb rpm; do [[ -s $work/$shell/usr/share/bash-completion/completions/waggle ]] || differs "the $shell lacks completions"; done
	ok 'deb and rpm are installed, and their program runs'
}

# registry_pushes: images and chart go to a registry and come back as others pull them.
registry_pushes() {
	(cd deploy/release && go build -o "$made/crane" github.com/google/go-containerregistry/cmd/crane)
	(cd e2e/kube/build/tools && go build -trimpath -o "$made/helm" helm.sh/helm/v3/cmd/helm)
	"$made/crane" registry serve --address 127.0.0.1:0 >"$work/registry.log" 2>&1 &
	background+=($!)
	local registry
	registry=127.0.0.1:$(awaited "$work/registry.log" 'port [0-9]*' | cut -d' ' -f2)
	for image in waggle waggle-nats; do
		"$made/release" push -plain-http "$dist/${image}_${version}_image.tar" "$registry/$image:$version" >/dev/null
		for platform in amd64 arm64; do
			"$made/crane" validate --remote "$registry/$image:$version" --platform "linux/$platform" >"$work/validate.log" 2>&1 || differs "$(cat "$work/validate.log")"
			mkdir -p "$work/$image-$platform"
			"$made/crane" export --platform "linux/$platform" "$registry/$image:$version" - | tar -xf - -C "$work/$image-$platform"
		done
	done
	says "linux/$arch" chroot --userspec=65532:65532 "$work/waggle-$arch" /usr/local/bin/waggle version
	says 'nats-server' chroot --userspec=65532:65532 "$work/waggle-nats-$arch" /usr/local/bin/nats-server --version
	says 'linux/arm64' qemu-aarch64-static "$work/waggle-arm64/usr/local/bin/waggle" version
	ok 'both images are pushed, pulled for both architectures, and run without root'

	"$made/release" push -plain-http "$dist/waggle_${version}_chart.tar" "$registry/charts/waggle:$version" >/dev/null
	"$made/helm" pull --plain-http "oci://$registry/charts/waggle" --version "$version" --destination "$work" >"$work/helm.log" 2>&1 || differs "$(cat "$work/helm.log")"
	cmp "$work/waggle-$version.tgz" "$dist/waggle-$version.tgz"
	says "ghcr.io/waggle-dev/waggle:$version" "$made/helm" template demo --kube-version 1.30.0 "$work/waggle-$version.tgz"
	ok 'helm pulls the chart and renders it'
}

# serve starts the installed program for the packages of the SDKs.
serve() {
	mkdir "$work/server"
	(cd "$work/server" && exec "$work/bin/waggle" up --addr 127.0.0.1:0 >"$work/up.log" 2>&1) &
	background+=($!)
	server=$(awaited "$work/up.log" 'http://127.0.0.1:[0-9]*')
	"$work/bin/waggle" healthcheck --addr "${server#http://}" --wait 2m >/dev/null
}

python_packages() {
	for kind in "$dist/waggle_sdk-$version-py3-none-any.whl" "$dist"/waggle[-_]sdk-"$version.tar.gz"; do
		"$python" -m venv --system-site-packages "$work/venv-${kind##*.}"
		"$work/venv-${kind##*.}/bin/pip" install -q --no-index --no-build-isolation --no-deps "$kind" >"$work/pip.log" 2>&1 || differs "$(cat "$work/pip.log")"
		(cd "$work" && says notes.md "$work/venv-${kind##*.}/bin/python" -c '
import sys
from waggle.sync import Waggle
with Waggle(sys.argv[1]) as w:
    print(w.session().send("which files are in the workspace?").result().text)' "$server")
	done
	ok 'wheel and source archive are installed in empty environments, and chat'
}

npm_packages() {
	mkdir "$work/npm"
	echo '{"type":"module","private":true}' >"$work/npm/package.json"
	(cd "$work/npm" && npm install --silent --ignore-scripts --no-audit --no-fund --prefer-offline --legacy-peer-deps "$dist"/waggle-dev-*.tgz ws@8.23.0)
	cat >"$work/npm/chat.mjs" <<-'JS'
		import { WaggleClient } from "@waggle-dev/client";
		const client = new WaggleClient({ url: process.argv[2] });
		const run = client.session().send("which files are in the workspace?");
		for await (const piece of run.deltas()) process.stdout.write(piece.text);
		client.close();
	JS
	(cd "$work/npm" && says notes.md node chat.mjs "$server")
	ok 'the npm packages are installed in an empty folder, and the client chats'
}

# A module cache of its own: the one of this machine would keep these versions for ever.
go_modules() {
	mkdir "$work/go"
	cat >"$work/go/main.go" <<-'GO'
		package main

		import (
			"context"
			"fmt"
			"log"
			"os"

			"github.com/waggle-dev/waggle/proto-schemas/api"
			"github.com/waggle-dev/waggle/sdk/go/waggle"
		)

		func main() {
			ctx := context.Background()
			w, err := waggle.Open(ctx, os.Args[1], waggle.Options{})
			if err != nil {
				log.Fatal(err)
			}
			run, err := w.Send(ctx, "", api.NewMessage{Content: "which files are in the workspace?"})
			if err != nil {
				log.Fatal(err)
			}
			answer, err := run.Result(ctx)
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(answer.Text)
		}
	GO
	(
		cd "$work/go"
		GOPROXY=file://$dist/goproxy,file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)
		export GOPROXY GOMODCACHE=$work/modcache GONOSUMDB=github.com/waggle-dev/waggle GOFLAGS=-mod=mod
		go mod init example.com/program >/dev/null 2>&1
		go get "github.com/waggle-dev/waggle/sdk/go@v$version" >"$work/get.log" 2>&1 || differs "$(cat "$work/get.log")"
		go mod tidy >"$work/get.log" 2>&1 || differs "$(cat "$work/get.log")"
		! grep -q replace go.mod
		says notes.md go run . "$server"
	)
	ok 'go get takes the modules without "replace", and a program of them chats'
}

signatures
platforms
system_packages
registry_pushes
serve
python_packages
npm_packages
go_modules
second_build
