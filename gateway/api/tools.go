package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/waggle-dev/waggle/gateway/api/request"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/edge"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

const (
	// maxTools bounds the tools of a page.
	maxTools = 500
	// defaultWait and maxWait bound the seconds for which a call of a tool is waited for: most tools answer at once, and
	// proxies end requests that are silent for a minute.
	defaultWait = 5
	maxWait     = 50
	// callMargin is what a request to the service may take besides that.
	callMargin = 10 * time.Second
)

// listTools returns a page of tools. An answer of the service holds as many as fit into a message of the bus.
func (a *API) listTools(r *http.Request, who *edge.Client) (any, error) {
	p := who.Principal()
	limit, err := request.Number(r, "limit", request.DefaultItems, maxTools)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	return ask[wire.ToolPage](r, who, cmd.Task, cmd.ListOffers, cmd.OfferListRequest{
		Tenant: p.Tenant, Kind: q.Get("kind"), Server: q.Get("provider"), Before: q.Get("before"), Limit: limit,
	})
}

// showTool returns one tool with its schemas.
func (a *API) showTool(r *http.Request, who *edge.Client) (any, error) {
	p := who.Principal()
	return ask[wire.ToolDetail](r, who, cmd.Task, cmd.ReadOffer, cmd.ReadOfferRequest{
		Tenant: p.Tenant, ToolsOf: cmd.ToolsOf{Kind: r.URL.Query().Get("kind"), Server: r.PathValue("provider")}, Tool: r.PathValue("tool"),
	})
}

// callTool runs a tool for the principal, outside of sessions and tasks. The principal that names the tool and its arguments
// has decided about the call, and the gateway signs it. Policy, quotas and log are those of a client of the swarm.
func (a *API) callTool(r *http.Request, who *edge.Client) (any, error) {
	p := who.Principal()
	wait, err := request.Number(r, "wait", defaultWait, maxWait)
	if err != nil {
		return nil, err
	}
	var b wire.NewToolCall
	if err := request.Decode(r, maxMessage, &b, true); err != nil {
		return nil, err
	}
	if b.TimeoutMS < 0 {
		return nil, fault.Newf(fault.InvalidField, "timeout_ms must not be negative.").At("timeout_ms")
	}
	in := cmd.ToolStart{WaitMS: (time.Duration(wait) * time.Second).Milliseconds(), ToolRequest: cmd.ToolRequest{
		Kind: b.Kind, Server: r.PathValue("provider"), Tool: r.PathValue("tool"), Arguments: b.Arguments, TimeoutMS: b.TimeoutMS,
	}}
	if in.CallID, err = commandID(b.ID, "call", p.Subject, in.Kind, in.Server, in.Tool); err != nil {
		return nil, err
	}
	if len(in.Arguments) == 0 {
		in.Arguments = json.RawMessage("{}")
	}
	request := cmd.ParticipantRequest{Tenant: p.Tenant, Principal: p.Subject}
	if request.Proof, err = a.cfg.Edge.Signer.Call(p.Tenant, p.Subject, in.ToolRequest); err != nil {
		return nil, err
	}
	if request.Data, err = plainjson.Marshal(in); err != nil {
		return nil, err
	}
	var out cmd.ToolOutcome
	err = who.Ask(r.Context(), edge.Request{
		Service: cmd.Task, Verb: cmd.StartTool, In: request, Data: request.Data, Within: time.Duration(wait)*time.Second + callMargin, Changes: true,
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

// retryTask submits a task that ended without success again, as a new one.
func (a *API) retryTask(r *http.Request, who *edge.Client) (any, error) {
	p := who.Principal()
	log, err := taskLog(r, who)
	if err != nil {
		return nil, err
	}
	var b wire.RetryTask
	if err := request.Decode(r, maxCancel, &b, false); err != nil {
		return nil, err
	}
	in := cmd.TaskRetry{TaskID: r.PathValue("id")}
	if in.NewID, err = commandID(b.ID, "retry", p.Subject, log.Entity.String()); err != nil {
		return nil, err
	}
	data, err := plainjson.Marshal(in)
	if err != nil {
		return nil, err
	}
	return a.newTask(r, who, cmd.RetryTask, cmd.ParticipantRequest{Tenant: p.Tenant, Principal: p.Subject, All: who.SeesAll(), Data: data})
}
