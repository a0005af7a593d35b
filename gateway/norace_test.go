//go:build !race

package gateway_test

// maxIdleStream bounds the memory of an idle stream in bytes: 10,000 of them take 400 MB at most.
const maxIdleStream = 40_000
