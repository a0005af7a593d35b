#!/usr/bin/env bash
# Builds the site for the web: scripts/docs.sh OUT [ROOT]. The present tree is at ROOT, each released version in a folder of its own, and
# versions.json lists them for the menu.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "$1")
root=${2:-/}

build() { # build TREE FOLDER VERSION
	(cd "$1/docs/site" && WAGGLE_DOCS_ROOT=$root WAGGLE_DOCS_FOLDER=$2 WAGGLE_DOCS_VERSION=$3 npm run --silent build)
	mkdir -p "$out/$2"
	cp -R "$1/docs/site/.vitepress/dist/." "$out/$2"
}

current=$(sed -n 's/^## \([0-9][^ ]*\).*/\1/p' CHANGELOG.md | head -1)
build . '' "$current"
versions="{\"version\":\"$current\",\"link\":\"$root\"}"
for tag in $(git tag -l 'v*' --sort=-v:refname); do
	version=${tag#v}
	[[ $version != "$current" ]] && git cat-file -e "$tag:docs/site/nav.json" 2>/dev/null || continue
	tree=$(mktemp -d)
	git worktree add -q --detach "$tree" "$tag"
	(cd "$tree" && npm ci --ignore-scripts --no-audit --no-fund --prefer-offline --loglevel=error)
	build "$tree" "$version/" "$version"
	git worktree remove --force "$tree"
	versions+=",{\"version\":\"$version\",\"link\":\"$root$version/\"}"
done
echo "[$versions]" >"$out/versions.json"
