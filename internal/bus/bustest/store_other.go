//go:build !linux

package bustest

func inMemory() string { return "" }
