// Package deptest makes a test fail when a package imports what it must not, so
// that the layers of the architecture page stay true.
package deptest
