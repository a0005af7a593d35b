// Package hostile is a collection of JSON documents that a strict reader must not
// be fooled by, for every test that has a way to bring bytes in from outside.
package hostile

// Document is one case.
type Document struct {
	Name  string // unique
	Body  []byte
	Legal bool // strictjson.Check accepts it; everybody else may still refuse it
}

// Documents returns all cases, always the same ones in the same order. The caller
// owns the slice.
func Documents() []Document { return nil }
