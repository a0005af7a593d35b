package myagent

import "embed"

// Schemas holds one JSON Schema (2020-12) for every event: schema/<event>.json. The
// events that go both ways have a second one for what the server sends:
// schema/<event>.echo.json.
//
//go:embed schema/*.json
var Schemas embed.FS

// Examples holds the examples of the protocol's original description, written as
// JSON: examples/<event>.json. Where it gives a choice the first one is taken, and
// what it leaves open ("...") is filled in.
//
//go:embed examples/*.json
var Examples embed.FS
