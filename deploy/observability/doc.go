// Package observability holds the configuration of Prometheus, Grafana and the
// OpenTelemetry collector. The code here only tests it, which is why it is a module of its
// own: nothing that Waggle is made of needs the parser of Prometheus.
package observability
