package orbit

import "embed"

// Schemas holds one JSON Schema (2020-12) for every message type and for the
// health answer: schema/<type>.json.
//
//go:embed schema/*.json
var Schemas embed.FS

// Examples holds the examples of the protocol's original description, unchanged:
// examples/<type>.json. Values that it leaves open are written "...".
//
//go:embed examples/*.json
var Examples embed.FS
