#!/usr/bin/env bash
# Makes every file of a release in dist/: equal commits give equal bytes. It publishes nothing.
# DIST     the folder (default dist)
# KEY      file of the signing key (default: a key for tests, which .cache keeps)
# PYTHON   a Python with setuptools and wheel
set -euo pipefail
umask 022
cd "$(dirname "$0")/.."
root=$PWD
dist=${DIST:-$root/dist}
work=$root/.cache/release
python=${PYTHON:-/usr/bin/python3}
export TZ=UTC LC_ALL=C
export GOFLAGS='' GOWORK=off CGO_ENABLED=0

[[ -z $(git status --porcelain) ]] || { echo 'commit your changes first: a release is made of a commit' >&2; exit 1; }
rm -rf "$dist" "$work/parts" "$work/bin" "$work/image"
mkdir -p "$dist" "$work/bin" "$work/parts/completions"
(cd deploy/release && go build -trimpath -o "$work/release" . && go build -trimpath -o "$work/nfpm" github.com/goreleaser/nfpm/v2/cmd/nfpm)

COMMIT=$(git rev-parse --short=12 HEAD)
CREATED=$(git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
release() { "$work/release" "$1" -root "$root" -time "$CREATED" "${@:2}"; } # release COMMAND ARGUMENTS...
version=$(release version)
VERSION=v$version
export COMMIT CREATED SOURCE_DATE_EPOCH VERSION

published=()
if tag=$(git describe --exact-match --tags --match 'v*' 2>/dev/null); then
	[[ $tag == "$VERSION" ]] || { echo "the tag is $tag, and CHANGELOG.md has $version" >&2; exit 1; }
	published=(-released)
fi
release notes "${published[@]}" >"$dist/notes.md"

key=${KEY:-$work/key.pem}
if [[ -n ${KEY:-} ]]; then
	release public -key "$key" | cmp - deploy/release/waggle.pub # the key that users know
elif [[ ! -f $key ]]; then
	(umask 077 && release key >"$key")
fi

echo 'programs'
targets=(linux/amd64 linux/arm64 darwin/amd64 darwin/arm64)
for target in "${targets[@]}"; do
	system=${target%/*} arch=${target#*/} programs=(waggle)
	[[ $system == linux ]] && programs+=(nats-server) # of the images
	GOOS=$system GOARCH=$arch scripts/images.sh binaries "$work/bin/$system-$arch" "${programs[@]}"
done

echo 'bills of materials'
(cd deploy/supply && go build -trimpath -o "$work/supply" .)
supply() (cd deploy/supply && "$work/supply" "$@")
for target in "${targets[@]}"; do
	for program in "$work/bin/${target/\//-}"/*; do
		name=$(basename "$program")
		supply sbom -version "$VERSION" -time "$CREATED" "$program" >"$dist/${name}_${version}_${target/\//_}.cdx.json"
	done
done

echo 'archives and packages'
supply notices "$work/parts/THIRD_PARTY_LICENSES"
cp LICENSE README.md "$work/parts/"
here=$work/bin/$(go env GOHOSTOS)-$(go env GOHOSTARCH)/waggle
for shell in bash zsh fish; do "$here" completion $shell >"$work/parts/completions/waggle.$shell"; done
for target in "${targets[@]}"; do
	system=${target%/*} arch=${target#*/}
	release archive "$dist/waggle_${version}_${system}_$arch.tar.gz" waggle="$work/bin/$system-$arch/waggle" LICENSE="$work/parts/LICENSE" \
		README.md="$work/parts/README.md" THIRD_PARTY_LICENSES="$work/parts/THIRD_PARTY_LICENSES" completions="$work/parts/completions"
	[[ $system == linux ]] || continue
	cp "$work/bin/$system-$arch/waggle" "$work/parts/waggle"
	for format in deb rpm; do
		(cd "$work/parts" && ARCH=$arch "$work/nfpm" package -f "$root/deploy/release/nfpm.yaml" -p $format -t "$dist/waggle_${version}_linux_$arch.$format" >/dev/null)
	done
done

echo 'images and chart'
release roots >"$work/roots.pem"
for arch in amd64 arm64; do
	CERTS=$work/roots.pem scripts/images.sh context "$work/image/$arch"
	cp "$work/bin/linux-$arch"/* "$work/image/$arch/"
done
for image in waggle nats; do
	release image -target $image -version "$version" -commit "$COMMIT" -out "$dist/${image/nats/waggle-nats}_${version}_image.tar" \
		amd64="$work/image/amd64" arm64="$work/image/arm64"
done
release chart -out "$dist/waggle-$version.tgz" -oci "$dist/waggle_${version}_chart.tar"

echo 'packages of the SDKs'
make --no-print-directory packages
rm -rf sdk/typescript/*/dist "$work/npm"
npm run --silent build --prefix sdk/typescript
for package in client react copilotkit ai-sdk; do
	mkdir -p "$work/npm/$package"
	cp -R sdk/typescript/$package/{package.json,README.md,dist} LICENSE "$work/npm/$package/"
	npm pack --silent --ignore-scripts --pack-destination "$dist" "$work/npm/$package" >/dev/null
done

# The wheel takes SOURCE_DATE_EPOCH; the source archive has times of its own.
rm -rf "$work/python" && mkdir -p "$work/python"
git archive HEAD sdk/python | tar -xf - -C "$work/python" --strip-components=2
cp LICENSE "$work/python/"
(cd "$work/python" && "$python" -c 'from setuptools import build_meta as b; b.build_wheel("out"); b.build_sdist("out")' >/dev/null 2>&1)
cp "$work/python/out"/*.whl "$dist/"
mkdir "$work/python/sdist" && tar -xzf "$work/python/out"/*.tar.gz -C "$work/python/sdist"
name=$(basename "$work/python/out"/*.tar.gz .tar.gz)
release archive "$dist/$name.tar.gz" "$name=$work/python/sdist/$name"

echo 'Go modules'
release modules -out "$dist/goproxy"

echo 'checksums and signatures'
release install -key "$key" >"$dist/install.sh"
release public -key "$key" >"$dist/waggle.pub"
(cd "$dist" && find . -maxdepth 1 -type f ! -name notes.md -printf '%f\n' | sort | xargs sha256sum) >"$work/checksums.txt"
mv "$work/checksums.txt" "$dist/checksums.txt"
release sign -key "$key" "$dist/checksums.txt"
release formula -dist "$dist" >"$dist/waggle.rb"
echo "made Waggle $version in $dist: $(find "$dist" -type f | wc -l) files, $(du -sh "$dist" | cut -f1)"
