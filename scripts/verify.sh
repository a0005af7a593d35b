#!/bin/sh
# Checks what a compiler of the workspace does not see. Arguments: "generated" or "alone", then module folders.
#   generated   1. generated files are what the generators make of the sources
#               2. go.work.sum has every sum that the go command would add to it
#   alone       every module builds, and its go.mod is tidy, without the workspace file: it writes nothing
set -eu
cd "$(dirname "$0")/.."
part=$1
shift

if [ "$part" = alone ]; then
	for dir in "$@"; do
		(
			cd "$dir"
			GOWORK=off go build ./...
			GOWORK=off go vet ./...
			GOWORK=off go mod tidy -diff
		) || {
			echo "verify: ${dir##*/} does not build alone or its go.mod is not tidy" >&2
			exit 1
		}
		echo "verify: ${dir##*/} builds alone, go.mod is tidy"
	done
	exit
fi

# Tracked and new files alike, so that the check also works before a commit.
fingerprint() {
	git ls-files -co --exclude-standard -z | sort -z | xargs -0 sha256sum 2>/dev/null
}

before=$(mktemp) after=$(mktemp)
trap 'rm -f "$before" "$after"' EXIT
fingerprint >"$before"
make --no-print-directory generate
fingerprint >"$after"
if ! cmp -s "$before" "$after"; then
	echo 'verify: generated files are out of date; run "make generate" and commit:' >&2
	diff "$before" "$after" | awk '/^[<>]/ { print "  " $3 }' | sort -u >&2
	exit 1
fi
echo 'verify: generated files are current'

# The go command writes go.work.sum without being asked: in a fresh clone "make run" and
# "make test" would change it. No command adds more than these: "go mod download" has the
# sums of modules, too, of which nothing is compiled.
go mod download
go list -m all >/dev/null
for dir in "$@"; do (cd "$dir" && go list -deps -test ./... >/dev/null); done
# A go.mod that was changed, too, brings its sums along.
fingerprint >"$after"
if ! cmp -s "$before" "$after" || { git diff --quiet HEAD -- '*go.mod' && ! git diff --quiet HEAD -- go.work.sum; }; then
	echo 'verify: the go command changes go.work.sum; commit what it added' >&2
	exit 1
fi
echo 'verify: go.work.sum is complete'
