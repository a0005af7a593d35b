package event

import "embed"

//go:generate go run ../cmd/schemagen

// Schemas holds the JSON Schemas (2020-12) of stored events: schema/event.json for
// what all have in common, and schema/<type>.json for each canonical type. They are
// generated from the structs of this package.
//
//go:embed schema/*.json
var Schemas embed.FS
