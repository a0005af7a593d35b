#!/usr/bin/env bash
# build.sh OUTPUT FLAGS... PACKAGE: go build, which says how far it is. The first build of a
# clone downloads about 70 MB and compiles about 750 packages, which takes minutes.
set -euo pipefail
out=$1
shift
go=${GO:-go}
began=$SECONDS
live=
if [[ -t 2 ]]; then live=1; fi

# say TEXT: the one line of progress; without a terminal, a line of its own.
shown=
say() {
	if [[ $live ]]; then
		printf '\r\033[K%s' "$1" >&2
		shown=1
	else
		echo "$1" >&2
	fi
}
pass() { # pass LINE: what go says beside its progress
	if [[ $shown ]]; then printf '\r\033[K' >&2; fi
	shown=
	printf '%s\n' "$1" >&2
}

# count WORD TOTAL EVERY: turn go's lines into progress; any other line passes unchanged.
count() {
	local word=$1 total=$2 every=$3 done=0 line
	while IFS= read -r line; do
		if [[ $word == download && $line == 'go: downloading '* ]]; then
			done=$((done + 1))
			if [[ $live ]] || ((done % every == 0)); then say "download modules: $done"; fi
		elif [[ $word == compile && $line =~ ^[A-Za-z0-9._~/+-]+$ && $line != FAIL ]]; then
			done=$((done + 1))
			if ((done == total)); then
				say "compile packages: $done of $total, then link"
			elif [[ $live ]] || ((done % every == 0)); then
				say "compile packages: $done of $total"
			fi
		else
			pass "$line"
		fi
	done
	if [[ $shown ]]; then printf '\r\033[K' >&2; fi
}

# go list downloads what is missing and names what has to be compiled.
stale=$(mktemp)
trap 'rm -f "$stale"' EXIT
{ "$go" list -deps -f '{{if .Stale}}{{.ImportPath}}{{end}}' "$@" 2>&1 >"$stale"; } | count download 0 25
total=$(grep -c . "$stale" || true)
if ((total > 50)); then
	echo "compile $total packages; the first build takes about 3 minutes on two cores" >&2
fi
{ "$go" build -v -o "$out" "$@" 2>&1; } | count compile "$total" 100
if ((total > 50)); then
	echo "built $out in $((SECONDS - began)) s" >&2
fi
