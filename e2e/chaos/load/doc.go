// Package load has clients of all dialects and two tenants at work while an installation is broken. Each client reports
// its frames, its requests and its reconnects.
package load
