package teamtools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
)

// everything is the pattern of all tools of a server.
const everything = "*"

// Toolbox is the tools of one member. It keeps what [tools.Caller] promises, and runs no
// tool but those that the member may use.
type Toolbox struct {
	client *Client
	member Member
	others tools.Caller
	own    map[string]offer

	mu      sync.Mutex
	offered map[string]bool // tools of the servers, as last listed
}

var _ tools.Caller = (*Toolbox)(nil)

// Toolbox returns the tools of a member: of the others those that it may use, and those
// of its team.
func (c *Client) Toolbox(m Member, others tools.Caller) (*Toolbox, error) {
	b := &Toolbox{client: c, member: m, others: others, own: map[string]offer{}, offered: map[string]bool{}}
	for _, t := range catalogue(m) {
		o, err := t.offer()
		if err != nil {
			return nil, fmt.Errorf("tool %s of team %s: %w", t.name, m.Team, err)
		}
		b.own[t.name] = o
	}
	return b, nil
}

// List implements tools.Caller. A member that may use no tool server does not need one.
func (b *Toolbox) List(ctx context.Context, tenant id.Tenant) ([]tools.Tool, error) {
	var list []tools.Tool
	if len(b.member.Tools) > 0 {
		all, err := b.others.List(ctx, tenant)
		if err != nil {
			return nil, err
		}
		for _, t := range all {
			if b.allows(t) {
				list = append(list, t)
			}
		}
	}
	b.mu.Lock()
	clear(b.offered)
	for _, t := range list {
		b.offered[t.Name] = true
	}
	b.mu.Unlock()
	for _, o := range b.own {
		list = append(list, o.Tool)
	}
	slices.SortFunc(list, func(x, y tools.Tool) int { return strings.Compare(x.Name, y.Name) })
	return list, nil
}

// allows reports whether the member may use a tool of a server. The names of the team's
// own tools belong to these.
func (b *Toolbox) allows(t tools.Tool) bool {
	if _, taken := b.own[t.Name]; taken {
		return false
	}
	return slices.ContainsFunc(b.member.Tools, func(pattern string) bool {
		server, tool, ok := strings.Cut(pattern, "/")
		return ok && server == t.Server && (tool == everything || tool == t.Own)
	})
}

// Call implements tools.Caller. It waits for the team's tools until ctx ends and ignores the call's
// timeout, because the model cannot do better than wait.
func (b *Toolbox) Call(ctx context.Context, call tools.Call) (tools.Result, error) {
	if o, ok := b.own[call.Tool]; ok {
		return b.callOwn(ctx, o, call)
	}
	ok, err := b.uses(ctx, call)
	switch {
	case err != nil:
		return tools.Result{}, err
	case !ok:
		return tools.Result{}, fault.New(fault.ToolNotFound)
	}
	return b.others.Call(ctx, call)
}

func (b *Toolbox) callOwn(ctx context.Context, o offer, call tools.Call) (tools.Result, error) {
	if _, err := o.schema.Arguments(call.Arguments); err != nil {
		return tools.Result{}, err
	}
	if call.Tool != cmd.ToolUpdateTodos {
		return b.client.act(ctx, b.member, call)
	}
	list, err := Todos(call.Arguments)
	if err != nil {
		return tools.Result{}, err
	}
	text := told(list)
	return tools.Result{Text: text, Bytes: len(text)}, nil
}

// uses reports whether the member may call the tool. One that was not listed may have
// come since.
func (b *Toolbox) uses(ctx context.Context, call tools.Call) (bool, error) {
	if b.listed(call.Tool) || len(b.member.Tools) == 0 {
		return b.listed(call.Tool), nil
	}
	if _, err := b.List(ctx, call.Tenant); err != nil {
		return false, err
	}
	return b.listed(call.Tool), nil
}

func (b *Toolbox) listed(tool string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.offered[tool]
}
