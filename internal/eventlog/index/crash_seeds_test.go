//go:build !nightly

package index_test

// crashSeeds is the number of histories with crashes.
const crashSeeds uint64 = 3
