#!/usr/bin/env bash
# Runs make test N times beside two programs that keep two processors busy, and lists each test that failed, with the number
# of runs in which it did. Fails if any did. Keeps the results of each run in .cache/steady.
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${1:-10}

burners=()
trap 'kill "${burners[@]}" 2>/dev/null || true' EXIT
for _ in 1 2; do
	while :; do :; done &
	burners+=($!)
done

rm -rf .cache/steady
mkdir -p .cache/steady
failed=0
for run in $(seq "$runs"); do
	began=$SECONDS
	verdict=ok
	CI=true make --no-print-directory test >".cache/steady/$run.log" 2>&1 || { verdict=FAIL; failed=$((failed + 1)); }
	cp .cache/test/unit.json ".cache/steady/$run.json"
	printf '%-4s run %d of %d: %s, %d s\n' "$verdict" "$run" "$runs" "$(grep -E '^[0-9]+ passed' ".cache/steady/$run.log" | paste -sd+ | sed 's/+/; /g')" $((SECONDS - began))
done

grep -h '^--- FAILED' .cache/steady/*.log | sort | uniq -c | sort -rn || true
echo "$((runs - failed)) passed, $failed failed"
((failed == 0))
