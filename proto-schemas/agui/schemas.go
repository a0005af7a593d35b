package agui

import _ "embed"

// Schema is the bundle of JSON Schemas (2020-12) of the protocol, as far as Waggle serves it: #/$defs/<type> for each event. It
// is generated from the structs of this package.
//
//go:embed schema.json
var Schema string
