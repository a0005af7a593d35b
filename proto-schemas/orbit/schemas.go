package orbit

import "embed"

// Schema is the bundle of JSON Schemas (2020-12) of the protocol: #/$defs/<type> for each
// message, and #/$defs/health for the health answer. It is generated from the structs of
// this package.
//
//go:embed schema.json
var Schema string

// Examples holds the examples of the protocol's original description, unchanged:
// examples/<type>.json. Values that it leaves open are written "...".
//
//go:embed examples/*.json
var Examples embed.FS
