package remote

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/rpc"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
)

// listTimeout bounds one page of a list.
const listTimeout = 5 * time.Second

type client struct {
	calls  rpc.Caller
	offers offers
}

// NewClient returns a Toolbox that asks any instance of the tool service on the bus. It is safe for concurrent use and needs
// no closing.
func NewClient(c *bus.Conn) tools.Toolbox {
	return newClient(rpc.Caller{Conn: c, Service: tools.ServiceName, Verbs: verbsOfCalls})
}

func newClient(calls rpc.Caller) *client { return &client{calls, newOffers()} }

// List returns the tools on offer. See tools.Caller.
func (c *client) List(ctx context.Context, tenant id.Tenant) ([]tools.Tool, error) {
	had, _ := c.offers.last.Get(tenant)
	got, err := c.tools(ctx, listRequest{Tenant: tenant, Known: had.digest})
	switch {
	case err != nil:
		return nil, err
	case got.Same && got.Digest == had.digest:
		return slices.Clone(had.tools), nil
	case got.Same:
		return nil, emptyAnswer()
	case got.Digest != "":
		c.offers.last.Add(tenant, offer{slices.Clone(got.Tools), got.Digest})
	}
	return got.Tools, nil
}

// ToolsOf returns a server and its tools. See tools.Toolbox.
func (c *client) ToolsOf(ctx context.Context, tenant id.Tenant, kind, server string) (tools.Server, []tools.Tool, error) {
	if kind == "" {
		return tools.Server{}, nil, tools.BadKind()
	}
	got, err := c.tools(ctx, listRequest{Tenant: tenant, Kind: kind, Server: server})
	switch {
	case err != nil:
		return tools.Server{}, nil, err
	case got.Server == nil:
		return tools.Server{}, nil, emptyAnswer()
	}
	return *got.Server, got.Tools, nil
}

func emptyAnswer() *fault.Fault {
	return fault.Newf(fault.Internal, "The tool service sent an empty response.")
}

// tools returns all pages as one. Its digest is empty if the tools changed meanwhile.
func (c *client) tools(ctx context.Context, req listRequest) (toolPage, error) {
	all, digest := []tools.Tool{}, ""
	for n := 0; ; n++ {
		var got toolPage
		if err := c.ask(ctx, verbList, req, &got); err != nil {
			return toolPage{}, err
		}
		all = append(all, got.Tools...)
		if n > 0 && got.Digest != digest {
			got.Digest = ""
		}
		if !got.More || len(got.Tools) == 0 {
			got.Tools = all
			return got, nil
		}
		digest = got.Digest
		req.After, req.Known = got.Tools[len(got.Tools)-1].Name, ""
	}
}

// Servers returns the servers that the tenant may see. See tools.Toolbox.
func (c *client) Servers(ctx context.Context, tenant id.Tenant, kind string) ([]tools.Server, error) {
	all := []tools.Server{}
	req := listRequest{Tenant: tenant, Kind: kind}
	for {
		var got serverPage
		if err := c.ask(ctx, verbServers, req, &got); err != nil {
			return nil, err
		}
		all = append(all, got.Servers...)
		if !got.More || len(got.Servers) == 0 {
			return all, nil
		}
		req.After = got.Servers[len(got.Servers)-1].Order()
	}
}

func (c *client) ask(ctx context.Context, verb id.Name, in listRequest, out any) error {
	return publicError(rpc.CallWithin(ctx, c.calls.Conn, listTimeout, tools.ServiceName, verb, in, out))
}

// Call runs a tool. See tools.Caller.
func (c *client) Call(ctx context.Context, call tools.Call) (tools.Result, error) {
	return c.CallWith(ctx, call, nil)
}

// CallWith runs a tool and passes on its notifications. See tools.Toolbox.
func (c *client) CallWith(ctx context.Context, call tools.Call, told func(tools.Notification)) (tools.Result, error) {
	if err := ctx.Err(); err != nil {
		return tools.Result{}, fault.New(fault.ToolCancelled).Wrap(err)
	}
	res, err := rpc.Operate[tools.Notification, *tools.Result](ctx, c.calls, refOf(call), call, told)
	switch {
	case err != nil:
		return tools.Result{}, publicError(err)
	case res == nil:
		return tools.Result{}, fault.Newf(fault.ToolLost, "The tool service sent an empty response. The call may have taken effect.")
	}
	return *res, nil
}

// publicError returns the fault of tools for an error of a request.
func publicError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rpc.ErrLost):
		return fault.New(fault.ToolLost).Wrap(err)
	case errors.Is(err, rpc.ErrNotStopped):
		return fault.Newf(fault.ToolLost, "The tool was cancelled but did not confirm it. The call may have taken effect.").Wrap(err)
	case errors.Is(err, fault.New(fault.BusUnavailable)):
		return fault.New(fault.ToolsDown).Wrap(err)
	case errors.Is(err, nats.ErrMaxPayload):
		return fault.Newf(fault.ToolBadInput, "The arguments are larger than a message may be. Send less at a time.").Wrap(err)
	}
	if _, ok := errors.AsType[*fault.Fault](err); ok {
		return err
	}
	return fault.New(fault.ToolsDown).Wrap(err)
}
