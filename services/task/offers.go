package task

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
)

// offers answers with a page of the tools of providers, in the order of the providers and of the tools' names.
func (c *catalogue) offers(ctx context.Context, in cmd.OfferListRequest) (api.ToolPage, error) {
	before, err := parseOffer(in.Before)
	if err != nil {
		return api.ToolPage{}, err
	}
	servers, err := c.tools.Servers(ctx, in.Tenant, in.Kind)
	if err != nil {
		return api.ToolPage{}, err
	}
	models, err := c.offered(ctx, in.Tenant)
	if err != nil {
		return api.ToolPage{}, err
	}
	p := offerPage{limit: max(in.Limit, 1), room: int(c.deps.Conn.NATS().MaxPayload()) - listEnvelope, out: api.ToolPage{Tools: []api.ToolSummary{}}}
	servers = slices.DeleteFunc(servers, func(srv tools.Server) bool { return in.Server != "" && in.Server != srv.ID })
	if before == (offerPlace{}) {
		p.report(servers)
	}
	for _, srv := range servers {
		if srv.Order() < before.order {
			continue
		}
		srv, list, err := c.tools.ToolsOf(ctx, in.Tenant, srv.Kind, srv.ID)
		switch {
		case errors.Is(err, fault.New(fault.ServiceNotFound)), errors.Is(err, fault.New(fault.ServerNotFound)):
			continue // it has left meanwhile
		case err != nil:
			return api.ToolPage{}, err
		}
		for _, t := range list {
			if srv.Order() == before.order && t.Name <= before.tool {
				continue
			}
			if full, err := p.add(srv, t, models[t.Name]); full || err != nil {
				return p.out, err
			}
		}
	}
	return p.out, nil
}

// offerPage collects a page of tools. It fits into a message of the bus, and has one tool at least.
type offerPage struct {
	out         api.ToolPage
	last        offerPlace
	limit, room int
}

// report adds what is wrong with the servers, in at most half of the page.
func (p *offerPage) report(servers []tools.Server) {
	room := p.room / 2
	for _, srv := range servers {
		one := api.ToolServer{Kind: srv.Kind, Provider: srv.ID, Status: srv.Status, Trouble: srv.Trouble}
		for _, l := range srv.LeftOut {
			one.LeftOut = append(one.LeftOut, api.LeftOutTool{Tool: l.Tool, Why: l.Why})
		}
		if one.Trouble == "" && len(one.LeftOut) == 0 {
			continue
		}
		n := len(encode(one)) + 1
		if n > room {
			return
		}
		room, p.room = room-n, p.room-n
		p.out.Servers = append(p.out.Servers, one)
	}
}

// add adds a tool, and reports whether the page was full before.
func (p *offerPage) add(srv tools.Server, t tools.Tool, models bool) (full bool, err error) {
	one := offerOf(srv, t, models)
	b, err := json.Marshal(one)
	if err != nil {
		return false, fmt.Errorf("encode a tool: %w", err)
	}
	n := len(p.out.Tools)
	if p.room -= len(b) + 1; n > 0 && (n == p.limit || p.room < 0) {
		p.out.Next, p.out.More = p.last.String(), true
		return true, nil
	}
	p.out.Tools, p.last = append(p.out.Tools, one), offerPlace{srv.Order(), t.Name}
	return false, nil
}

// offer answers with one tool of a provider.
func (c *catalogue) offer(ctx context.Context, in cmd.ReadOfferRequest) (api.ToolDetail, error) {
	srv, list, err := c.tools.ToolsOf(ctx, in.Tenant, in.Kind, in.Server)
	if err != nil {
		return api.ToolDetail{}, err
	}
	models, err := c.offered(ctx, in.Tenant)
	if err != nil {
		return api.ToolDetail{}, err
	}
	for _, t := range list {
		if t.Own == in.Tool {
			return api.ToolDetail{
				ToolSummary: offerOf(srv, t, models[t.Name]), InputSchema: t.InputSchema, OutputSchema: t.OutputSchema, IdempotentUnless: t.IdempotentUnless,
			}, nil
		}
	}
	return api.ToolDetail{}, fault.New(fault.ToolNotFound)
}

// offered returns the names of the tools that models are offered.
func (c *catalogue) offered(ctx context.Context, t id.Tenant) (map[string]bool, error) {
	list, err := c.tools.List(ctx, t)
	if err != nil {
		return nil, err
	}
	names := make(map[string]bool, len(list))
	for _, t := range list {
		names[t.Name] = true
	}
	return names, nil
}

func offerOf(srv tools.Server, t tools.Tool, models bool) api.ToolSummary {
	asks := event.PendingCall{Policy: &t.Policy}.NeedsPerson()
	return api.ToolSummary{
		Kind: srv.Kind, Provider: srv.ID, ProviderName: srv.Name, Status: srv.Status, Name: t.Own, Title: t.Title, Description: t.Description,
		ReadOnly: t.ReadOnly, Idempotent: t.Idempotent || t.ReadOnly, Approval: t.Policy.Approval, Asks: asks,
		Untrusted: t.Policy.Untrusted, Models: models, Agents: t.Agents || !asks,
	}
}

// offerPlace is where a tool is in the list.
type offerPlace struct{ order, tool string }

// String returns the member next of a page that ends with the tool.
func (p offerPlace) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.order + "\x00\x00" + p.tool))
}

func parseOffer(place string) (offerPlace, error) {
	if place == "" {
		return offerPlace{}, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(place)
	order, tool, ok := strings.Cut(string(b), "\x00\x00")
	if err != nil || !ok {
		return offerPlace{}, fault.Newf(fault.InvalidField, "This is not the next value of an earlier page.").At("before").Wrap(err)
	}
	return offerPlace{order, tool}, nil
}
