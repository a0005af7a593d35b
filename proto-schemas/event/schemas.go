package event

import _ "embed" // For the bundle.

//go:generate go run ../cmd/schemagen

// Schema is the bundle of JSON Schemas (2020-12) of stored events: #/$defs/event for what
// all have in common, and #/$defs/<type> for each canonical type. It is generated from
// the structs of this package.
//
//go:embed schema.json
var Schema string
