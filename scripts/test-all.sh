#!/usr/bin/env bash
# Everything that can be tested without a container engine: `make test-all` has built what this needs. Each part runs even if
# one before it has failed. Logs and results are in .cache/all; the last line counts the tests. ONLY="unit bench" narrows.
set -uo pipefail
cd "$(dirname "$0")/.."

out=.cache/all
mkdir -p "$out"
parts=${ONLY:-unit observability e2e lab typescript python lint verify helm supply chaos soak bench}
failed=()
part() { # part NAME COMMAND...: run it, keep its log, show the log's end on failure
	local name=$1 began=$SECONDS verdict=ok
	shift
	[[ " $parts " == *" $name "* ]] || return 0
	"$@" >"$out/$name.log" 2>&1 || { verdict=FAIL; failed+=("$name"); }
	printf '%-4s %s, %d s\n' "$verdict" "$name" $((SECONDS - began))
	[[ $verdict == ok ]] || tail -n 60 "$out/$name.log"
}

mapfile -t modules < <(go list -m -f '{{.Dir}}')
units=() nightly='-tags=grpcnotrace,nightly'
for dir in "${modules[@]}"; do
	case $dir in */e2e | */e2e/lab | */deploy/supply) ;; *) units+=("$dir/...") ;; esac
done
export WAGGLE_E2E_BINARY=$PWD/bin/waggle CI=true
sum() { # sum NAME COMMAND...: with the results in a file
	local name=$1
	shift
	.cache/bin/testsum -out "$out/$name.json" "$@"
}

# Bounds on memory and allocations do not hold below the race detector: with them, tests run once more without it.
unit() {
	local status=0
	sum race -- go test -json -race -shuffle=on -count=3 -p 3 -timeout 60m "${units[@]}" || status=1
	sum nightly -- go test -json "$nightly" -count=1 -p 1 -timeout 30m "${units[@]}" || status=1
	return $status
}
part unit unit
part observability env GOWORK=off .cache/bin/testsum -out "$out/observability.json" -dirs "$PWD/deploy/observability" -- go test -json -race -count=3 ./...
part e2e sum e2e -dirs "$PWD/e2e" -- go test -json "$nightly" -shuffle=on -count=3 -p 1 -timeout 120m ./...
part lab sum lab -dirs "$PWD/e2e/lab" -- go test -json -count=1 -p 1 -timeout 60m ./...
part typescript make typescript PART=all
part python make python
part site make site
part docs make docs
part lint make lint
part verify make verify
part helm make helm
part supply make supply
part release make release-test
part chaos make chaos
part soak make soak
part bench make bench

.cache/bin/testsum "$out"/*.json .cache/test/{typescript,console,python,site,helm,supply,release}.json >"$out/sum.log" || failed+=(tests)
grep -v '^ok ' "$out/sum.log" | sed '$d'
((${#failed[@]} == 0)) || echo "failed: ${failed[*]}"
tail -n 1 "$out/sum.log"
((${#failed[@]} == 0))
