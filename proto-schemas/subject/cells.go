package subject

import "github.com/waggle-dev/waggle/proto-schemas/id"

// BucketCells is the bucket of the control cluster that names the cell of each tenant. Its keys are tenants.
const BucketCells = "cells"

// Filters of everything that one tenant has in a stream, for moves to another cell.

// TenantFilter returns the filter of all logs of a tenant in the partition.
func (p Partition) TenantFilter(t id.Tenant) string {
	return "evt." + p.String() + "." + t.String() + ".>"
}

// CommandsFor returns the filter of all commands of a tenant.
func CommandsFor(t id.Tenant) string { return "cmd.*.*." + t.String() + ".>" }

// TimersSet returns the filter of all schedules of a service for a tenant.
func TimersSet(service id.Name, t id.Tenant) string {
	return "timer.set." + service.String() + "." + t.String() + ".>"
}

// TimersDue returns the filter of all due timers of a service for a tenant.
func TimersDue(service id.Name, t id.Tenant) string {
	return "timer.fire." + service.String() + "." + t.String() + ".>"
}

// IndexTenant returns the filter of all that the index holds of a tenant.
func IndexTenant(t id.Tenant) string { return "index." + t.String() + ".>" }

// BucketTenant returns the filter of a tenant's keys in a bucket whose keys begin with the tenant.
func BucketTenant(bucket string, t id.Tenant) string { return BucketSubject(bucket, t.String()+".>") }
