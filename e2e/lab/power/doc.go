// Package power cuts the power of NATS servers: their disks forget what was not yet
// written through, which a process that is merely killed leaves in the page cache.
package power
