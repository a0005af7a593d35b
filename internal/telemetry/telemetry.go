// Package telemetry makes the logger, the metrics registry and the traces that
// every role of Waggle shares, and holds the attribute keys they use.
//
// What it is not for: metrics themselves. Each package registers its own with the
// registry it is given, and calls Lint in a test.
package telemetry
