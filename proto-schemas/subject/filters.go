package subject

import "github.com/waggle-dev/waggle/proto-schemas/id"

// Filters over all tenants, for permissions. A filter for a service or a kind never matches subjects of another one.

// EventsOf returns the filter of all logs of a kind.
func EventsOf(k id.Kind) string { return "evt.*.*." + string(k) + ".*" }

// LiveOf returns the filter of all announcements of logs of a kind.
func LiveOf(k id.Kind) string { return "live.*." + string(k) + ".>" }

// CommandsOf returns the filter of all commands of one verb of a service.
func CommandsOf(service, verb id.Name) string {
	return "cmd." + service.String() + ".*.*.*." + verb.String()
}

// DeadOf returns the filter of all dead letters of a service.
func DeadOf(service id.Name) string { return "dead." + service.String() + ".*.*.*" }

// TimersOf returns the filter of all schedules of a service.
func TimersOf(service id.Name) string { return "timer.set." + service.String() + ".*.*.*" }

// RPCOf returns the filter of all endpoints of a service.
func RPCOf(service id.Name) string { return "rpc." + service.String() + ".*" }

// DirectMessages is the filter of the direct messages to all connections of all gateways.
const DirectMessages = "direct.*.*"

// DirectoryKeys returns the KV filter of all instances of what of one name.
func DirectoryKeys(what, name id.Name) string { return what.String() + "." + name.String() + ".*" }

// AckKeys returns the KV filter of all positions in logs of a kind.
func AckKeys(k id.Kind) string { return "*." + string(k) + ".*.*" }

// FoldKeys returns the KV filter of all snapshots of logs of a kind.
func FoldKeys(k id.Kind) string { return "*." + string(k) + ".*" }

// FoldParts returns the KV filter of the parts of all snapshots of logs of a kind.
func FoldParts(k id.Kind) string { return "*." + string(k) + ".*.*" }

// RegistryKeys returns the KV filter of all entries of a kind in the registry.
func RegistryKeys(kind id.Name) string { return "*." + kind.String() + ".*" }

// AckKeysOf returns the KV filter of all positions in one log.
func AckKeysOf(l Log) string { return l.Name() + ".*" }

// TimersFor returns the filter of all timers of a service for one entity, set or due.
func TimersFor(service id.Name, t id.Tenant, key id.Entity) string {
	return "timer.*." + service.String() + "." + t.String() + "." + key.String() + ".*"
}

// DeadFor returns the filter of the dead letters of a service for one entity.
func DeadFor(service id.Name, t id.Tenant, key id.Entity) string {
	return "dead." + service.String() + "." + t.String() + "." + key.String() + ".*"
}

// DeadIn returns the filter of all dead letters of a tenant.
func DeadIn(t id.Tenant) string { return "dead.*." + t.String() + ".*.*" }

// BucketStream returns the name of the stream behind a KV bucket.
func BucketStream(bucket string) string { return "KV_" + bucket }

// BucketSubject returns the subject of the keys of a KV bucket that match the pattern.
func BucketSubject(bucket, pattern string) string { return "$KV." + bucket + "." + pattern }
