// Package telemetry creates the logger, the metrics registry and the traces that every role of Waggle shares, and
// holds their attribute keys.
//
// It does not define metrics: each package registers its own with the registry it gets, and calls Lint in a test.
//
// Metrics and profiles have a listener of their own (telemetry.addr), for a network of operators: they name models, load
// and close codes of all tenants. It asks for no credentials, refuses requests of web pages, and on loopback every host
// name but those of loopback.
package telemetry
