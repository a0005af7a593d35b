package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/waggle-dev/waggle/gateway/api/openapi"
	"github.com/waggle-dev/waggle/gateway/api/request"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/edge"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// tools are those of MCP servers and services.
type tools struct{ *parts }

// toolWait is the number of seconds for which a call of a tool is waited for: most tools answer at once, and proxies end requests
// that are silent for a minute.
var toolWait = count{openapi.Parameter{Name: "wait", About: "Seconds to wait for the outcome; 5 by default.", Type: "integer", Maximum: 50}, 5}

// callMargin is what a request to the service may take besides that.
const callMargin = 10 * time.Second

var toolLimit = limit("Tools", defaultItems, 500)

func (t tools) routes() []Route {
	known := []fault.Code{fault.ToolNotFound, fault.ServerNotFound, fault.ServiceNotFound, fault.ToolBadInput, fault.ToolsDown}
	return []Route{
		{
			Method: "GET", Path: "/tools", ID: "listTools", Tag: "swarm", Summary: "List the tools of providers.",
			Query: []openapi.Parameter{
				{Name: "kind", About: "Kind of the providers: mcp or service.", Type: "string"},
				{Name: "provider", About: "Id of a provider.", Type: "string"},
				before, toolLimit.Parameter,
			},
			Answers: json200("A page of the tools, without their schemas.", wire.ToolPage{}), Faults: []fault.Code{fault.ToolsDown, fault.InvalidField},
			Handler: t.server.Serve(t.list),
		},
		{
			Method: "GET", Path: "/tools/{provider}/{tool}", ID: "showTool", Tag: "swarm", Summary: "Show a tool of a provider.",
			Query:   []openapi.Parameter{{Name: "kind", About: "Kind of the provider: mcp or service.", Type: "string"}},
			Answers: json200("The tool.", wire.ToolDetail{}), Faults: known, Handler: t.server.Serve(t.show),
		},
		{
			Method: "POST", Path: "/tools/{provider}/{tool}/call", ID: "callTool", Tag: "swarm", Summary: "Call a tool of a provider.",
			Query: []openapi.Parameter{toolWait.Parameter},
			Body:  wire.NewToolCall{}, Required: true, Example: `{"id":"c1","kind":"service","arguments":{"path":"notes.md"},"timeout_ms":10000}`,
			Answers: []openapi.Answer{
				{Status: http.StatusOK, About: "The outcome. A repeat with the same id has the same response.", Type: wire.CallView{}},
				{Status: http.StatusAccepted, About: "The call takes longer. The log of kind call with the id call_id gets its outcome.", Type: wire.CallView{}},
			},
			Faults: append([]fault.Code{
				fault.BadJSON, fault.InvalidField, fault.MessageTooBig, fault.ToolDenied, fault.ServiceBusy, fault.ToolsBusy, fault.Overloaded, fault.QuotaExceeded,
			}, known...),
			Handler: t.server.Serve(t.call),
		},
	}
}

// list returns a page of tools. An answer of the service holds as many as fit into a message of the bus.
func (t tools) list(r *http.Request, who *edge.Client) (any, error) {
	p, q := who.Principal(), queryOf(r)
	limit := q.count(toolLimit)
	if q.err != nil {
		return nil, q.err
	}
	return ask[wire.ToolPage](r, who, cmd.Task, cmd.ListOffers, cmd.OfferListRequest{
		Tenant: p.Tenant, Kind: q.Get("kind"), Server: q.Get("provider"), Before: q.Get("before"), Limit: limit,
	})
}

// show returns one tool with its schemas.
func (t tools) show(r *http.Request, who *edge.Client) (any, error) {
	p := who.Principal()
	return ask[wire.ToolDetail](r, who, cmd.Task, cmd.ReadOffer, cmd.ReadOfferRequest{
		Tenant: p.Tenant, ToolsOf: cmd.ToolsOf{Kind: r.URL.Query().Get("kind"), Server: r.PathValue("provider")}, Tool: r.PathValue("tool"),
	})
}

// call runs a tool for the principal, outside of sessions and tasks. The principal that names the tool and its arguments
// has decided about the call, and the gateway signs it. Policy, quotas and log are those of a client of the swarm.
func (t tools) call(r *http.Request, who *edge.Client) (any, error) {
	p, q := who.Principal(), queryOf(r)
	wait := time.Duration(q.count(toolWait)) * time.Second
	if q.err != nil {
		return nil, q.err
	}
	var b wire.NewToolCall
	if err := request.Decode(r, maxMessage, &b, true); err != nil {
		return nil, err
	}
	if b.TimeoutMS < 0 {
		return nil, fault.Newf(fault.InvalidField, "timeout_ms must not be negative.").At("timeout_ms")
	}
	in := cmd.ToolStart{WaitMS: wait.Milliseconds(), ToolRequest: cmd.ToolRequest{
		Kind: b.Kind, Server: r.PathValue("provider"), Tool: r.PathValue("tool"), Arguments: b.Arguments, TimeoutMS: b.TimeoutMS,
	}}
	var err error
	if in.CallID, err = edge.CommandID(b.ID, "call", p.Subject, in.Kind, in.Server, in.Tool); err != nil {
		return nil, err
	}
	if len(in.Arguments) == 0 {
		in.Arguments = json.RawMessage("{}")
	}
	request := cmd.ParticipantRequest{Tenant: p.Tenant, Principal: p.Subject}
	if request.Proof, err = t.edge.Signer.Call(p.Tenant, p.Subject, in.ToolRequest); err != nil {
		return nil, err
	}
	if request.Data, err = plainjson.Marshal(in); err != nil {
		return nil, err
	}
	var out cmd.ToolOutcome
	err = who.Ask(r.Context(), edge.Request{
		Service: cmd.Task, Verb: cmd.StartTool, In: request, Data: request.Data, Within: wait + callMargin, Changes: true,
	}, &out)
	if err != nil {
		return nil, misplaced(err)
	}
	call := wire.CallView{
		CallID: in.CallID, Kind: in.Kind, Provider: in.Server, Tool: in.Tool, Status: out.Status,
		Result: out.Result, Code: out.Code, Error: out.Error, Details: out.Details, DurationMS: out.DurationMS,
	}
	if out.Status == cmd.CallQueued || out.Status == cmd.CallRunning {
		return respond.Accepted{Answer: call}, nil
	}
	return call, nil
}

// misplaced names the place of a wrong argument within the body of the request.
func misplaced(err error) error {
	if f, ok := errors.AsType[*fault.Fault](err); ok && f.Code == fault.ToolBadInput && f.Field != "kind" {
		return f.At("arguments" + f.Field)
	}
	return err
}
