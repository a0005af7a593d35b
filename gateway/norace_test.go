//go:build !race

package gateway_test

// maxIdleStream bounds the memory of an idle stream in bytes. They take 34,000; 42,000 if their stacks are twice as large.
const maxIdleStream = 38_000
