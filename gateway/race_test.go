//go:build race

package gateway_test

// maxIdleStream bounds the memory of an idle stream in bytes with the race detector: its frames are larger, and so are stacks.
const maxIdleStream = 56 << 10
