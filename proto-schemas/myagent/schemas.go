package myagent

import "embed"

// Schema is the bundle of JSON Schemas (2020-12) of the protocol: #/$defs/<event> for each
// event. Those that go both ways have a second definition for what the server sends:
// #/$defs/<event>.echo. It is generated from the structs and examples of this package.
//
//go:embed schema.json
var Schema string

// Examples holds the examples of the protocol's original description, written as
// JSON: examples/<event>.json. Where it gives a choice the first one is taken, and
// what it leaves open ("...") is filled in.
//
//go:embed examples/*.json
var Examples embed.FS
