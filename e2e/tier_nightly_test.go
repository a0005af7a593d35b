//go:build nightly

package e2e_test

// many returns the size of a test that is run for every submission, and larger at night.
func many(_, nightly int) int { return nightly }
