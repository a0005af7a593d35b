#!/bin/sh
# Runs the benchmarks whose name matches, of the packages that have any, one
# package at a time. Arguments: regexp, module folders.
set -eu
pattern=$1
shift
for dir in "$@"; do
	cd "$dir"
	grep -rl --include='*_test.go' '^func Benchmark' . | xargs -r -n1 dirname | sort -u | while read -r pkg; do
		go test -run '^$' -bench "$pattern" -benchmem -timeout 20m "$pkg"
	done
done
