package asp

import (
	"strings"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/internal/strict"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// absent says what an inquiry named that does not exist; empty for other faults. The words are the protocol's own.
func absent(q dialect.Inquiry, code fault.Code) string {
	switch q := q.(type) {
	case dialect.Submit:
		if code == fault.AgentNotFound {
			return none("agent", named("id", q.AgentID), named("name", q.AgentName), named("capabilities", q.Capabilities...))
		}
	case dialect.SendClient:
		if code == fault.ClientNotFound {
			return none("client", named("id", q.TargetID))
		}
	case dialect.ShowTask:
		if code == fault.TaskNotFound {
			return none("task", named("id", q.TaskID))
		}
	case dialect.ListTools:
		return noProvider(code, q.Server)
	case dialect.RunTool:
		return noProvider(code, q.Server)
	}
	return ""
}

// noProvider is absent for a provider of tools.
func noProvider(code fault.Code, id string) string {
	switch code {
	case fault.ServiceNotFound:
		return none("service", named("id", id))
	case fault.ServerNotFound:
		return none("MCP server", named("id", id))
	}
	return ""
}

// maxAbsent bounds, in bytes, what is quoted of the names that do not exist.
const maxAbsent = 500

// none says that nothing of a kind was found by any of the ways in which it was named.
func none(kind string, by ...string) string {
	var ways []string
	for _, way := range by {
		if way != "" {
			ways = append(ways, way)
		}
	}
	return "No " + kind + " found with " + strict.Cut(strings.Join(ways, " or "), maxAbsent)
}

// named is one way to name something; empty if it was not used.
func named(member string, values ...string) string {
	if first(values...) == "" {
		return ""
	}
	return member + " '" + strings.Join(values, "', '") + "'"
}
