// Package site runs an installation whose parts can be broken: three NATS servers, two gateways and two processes of
// every service, each under its own user of the bus and, where the machine allows it, in a network of its own.
package site
