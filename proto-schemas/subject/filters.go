package subject

import "github.com/waggle-dev/waggle/proto-schemas/id"

// Filters over all tenants, of which permissions are made. Where a function takes a
// service or a kind, nothing of another one matches its filter.

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

// Asides is the filter of all connections of all gateways.
const Asides = "aside.*.*"

// DirectoryKeys returns the KV filter of all instances of what of one name.
func DirectoryKeys(what, name id.Name) string { return what.String() + "." + name.String() + ".*" }

// AckKeys returns the KV filter of all positions in logs of a kind.
func AckKeys(k id.Kind) string { return "*." + string(k) + ".*.*" }

// FoldKeys returns the KV filter of all snapshots of logs of a kind.
func FoldKeys(k id.Kind) string { return "*." + string(k) + ".*" }

// RegistryKeys returns the KV filter of everything of a kind in the registry.
func RegistryKeys(kind id.Name) string { return "*." + kind.String() + ".*" }
