// Package strictjson decides whether a JSON document of a stranger may be looked
// at. encoding/json takes duplicate keys (the last wins), names in the wrong case
// and invalid UTF-8; two programs that read such a document differently are a way
// around every check between them.
package strictjson

// Limits bounds a document. Each limit is inclusive.
type Limits struct {
	Depth        int // nested arrays and objects
	Tokens       int // values, names and delimiters
	NumberDigits int // bytes of a number
}

// Default is for frames and requests from outside.
var Default = Limits{Depth: 32, Tokens: 10_000, NumberDigits: 64}
