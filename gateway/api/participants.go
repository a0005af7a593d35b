package api

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/waggle-dev/waggle/gateway/api/openapi"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/edge"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// participants are those of the swarm: agents, services, clients and MCP servers.
type participants struct{ *parts }

var participantLimit = limit("Items", defaultItems, maxItems)

func (p participants) routes() []Route {
	query := []openapi.Parameter{
		{Name: "status", About: "Status, as the agent protocol or the swarm names it.", Type: "string"},
		{Name: "capability", About: "A required capability.", Type: "string", Many: true},
		{Name: "name", About: "Part of the name, in any case.", Type: "string"},
		{Name: "prefix", About: "Beginning of the name.", Type: "string"},
		{Name: "type", About: "Type in the registration of the participant.", Type: "string"},
		before, participantLimit.Parameter,
	}
	return []Route{
		{
			Method: "GET", Path: "/agents", ID: "listAgents", Tag: "swarm", Summary: "List agents of the swarm.",
			Query: query, Answers: json200("The agents.", wire.AgentList{}), Faults: []fault.Code{fault.InvalidField},
			Handler: p.list(cmd.ListAgents, func(some []cmd.Participant, next string) any {
				return wire.AgentList{Agents: some, Next: next, More: next != ""}
			}),
		},
		{
			Method: "GET", Path: "/services", ID: "listServices", Tag: "swarm", Summary: "List ASP services.",
			Query: query, Answers: json200("The services.", wire.ServiceList{}), Faults: []fault.Code{fault.InvalidField},
			Handler: p.list(cmd.ListServices, func(some []cmd.Participant, next string) any {
				return wire.ServiceList{Services: some, Next: next, More: next != ""}
			}),
		},
		{
			Method: "GET", Path: "/clients", ID: "listClients", Tag: "swarm", Summary: "List clients of the swarm.",
			Query: query, Answers: json200("The clients.", wire.ClientList{}), Faults: []fault.Code{fault.InvalidField},
			Handler: p.list(cmd.ListClients, func(some []cmd.Participant, next string) any {
				return wire.ClientList{Clients: some, Next: next, More: next != ""}
			}),
		},
		{
			Method: "GET", Path: "/mcp", ID: "listServers", Tag: "swarm", Summary: "List MCP servers.",
			Query: query, Answers: json200("The servers.", wire.ServerList{}), Faults: []fault.Code{fault.ToolsDown, fault.InvalidField},
			Handler: p.list(cmd.ListServers, func(some []cmd.Participant, next string) any {
				return wire.ServerList{Servers: some, Next: next, More: next != ""}
			}),
		},
	}
}

// list returns the handler of a list that the task service knows under the verb.
func (p participants) list(verb id.Name, answer func([]cmd.Participant, string) any) http.HandlerFunc {
	return p.server.Serve(respond.Handler(func(r *http.Request, who *edge.Client) (any, error) {
		q := queryOf(r)
		limit := q.count(participantLimit)
		if q.err != nil {
			return nil, q.err
		}
		f := cmd.ParticipantFilter{
			Status: q.Get("status"), Capabilities: q.Values["capability"], Name: q.Get("name"), Prefix: q.Get("prefix"), Type: q.Get("type"),
		}
		of := who.Principal()
		all, next, err := gathered(p.parts, q.Get(before.Name), limit, func(from string, limit int) ([]cmd.Participant, string, error) {
			f.After, f.Limit = from, limit
			filter, err := json.Marshal(f)
			if err != nil {
				return nil, "", err
			}
			part, err := ask[cmd.ParticipantList](r, who, cmd.Task, verb, cmd.ParticipantRequest{Tenant: of.Tenant, Principal: of.Subject, Data: filter})
			if f, ok := errors.AsType[*fault.Fault](err); ok && f.Field == "after" {
				return nil, "", f.At(before.Name)
			}
			return part.Participants, part.Next(), err
		})
		if err != nil {
			return nil, err
		}
		return answer(all, next), nil
	}))
}
