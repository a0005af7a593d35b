//go:build !nightly

package e2e_test

// many returns the size of a test that is run for every submission, and larger at night.
func many(submission, _ int) int { return submission }
