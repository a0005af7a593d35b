// Package telemetry creates the logger, the metrics registry and the traces that every role of Waggle shares, and
// holds their attribute keys.
//
// It does not define metrics: each package registers its own with the registry it gets, and calls Lint in a test.
package telemetry
