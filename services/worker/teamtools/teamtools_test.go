package teamtools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/command"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/worker/teamtools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// servers plays the tool servers.
type servers struct {
	list   []tools.Tool
	err    error
	called []string
}

func (s *servers) List(context.Context, id.Tenant) ([]tools.Tool, error) { return s.list, s.err }

func (s *servers) Call(_ context.Context, c tools.Call) (tools.Result, error) {
	s.called = append(s.called, c.Tool)
	return tools.Result{Text: "from a server"}, nil
}

var coder = teamtools.Member{
	Tenant: id.DefaultTenant, Team: id.EntityFromExternal("team_1"), Name: "Coder", AgentID: "agent_1", RunID: "run_1",
	Colleagues: []event.Colleague{{Name: "Boss"}, {Name: "docs"}},
}

func newClient(t *testing.T, cfg teamtools.Config) *teamtools.Client {
	t.Helper()
	n := 0
	cfg.Instance, cfg.Now, cfg.Logger = id.MustName("w1"), time.Now, zerolog.Nop()
	cfg.NewID = func() string { n++; return fmt.Sprint(n) }
	c, err := teamtools.New(cfg)
	require.NoError(t, err)
	return c
}

func toolbox(t *testing.T, m teamtools.Member, s *servers) *teamtools.Toolbox {
	t.Helper()
	b, err := newClient(t, teamtools.Config{}).Toolbox(m, s)
	require.NoError(t, err)
	return b
}

func names(t *testing.T, b *teamtools.Toolbox) []string {
	t.Helper()
	list, err := b.List(t.Context(), id.DefaultTenant)
	require.NoError(t, err)
	var out []string
	for _, o := range list {
		out = append(out, o.Name)
	}
	return out
}

// TestPatternsNameServersAndTheirOwnNames: what tools are called when they are offered
// says nothing about whose they are.
func TestPatternsNameServersAndTheirOwnNames(t *testing.T) {
	s := &servers{list: []tools.Tool{
		{Name: "a_b_c", Server: "a", Own: "b_c"},
		{Name: "a_b_d", Server: "a_b", Own: "d"},
		{Name: "a_x", Server: "a", Own: "x"},
		{Name: "Odd_name_0a1b2c3d", Server: "Odd", Own: "näme"},
		{Name: cmd.ToolSendMessage, Server: "send", Own: "message_to"},
	}}
	own := []string{"create_tasks", "list_tasks", "send_message_to", "update_task_status", "update_todos"}
	for pattern, want := range map[string][]string{
		"a/*": {"a_b_c", "a_x"}, "a_b/*": {"a_b_d"}, "a/b_c": {"a_b_c"}, "a/a_b_c": nil, "Odd/näme": {"Odd_name_0a1b2c3d"},
		"*/*": nil, "a": nil, "a_b_c": nil, "a/": nil, "/x": nil, "send/*": nil,
	} {
		m := coder
		m.Tools = []string{pattern}
		b := toolbox(t, m, s)
		require.Equal(t, append(append([]string{}, want...), own...), sortedLast(names(t, b), own), pattern)
		for _, o := range s.list {
			_, err := b.Call(t.Context(), tools.Call{ID: "1", Tenant: id.DefaultTenant, Tool: o.Name})
			if o.Name == cmd.ToolSendMessage {
				require.ErrorIs(t, err, fault.New(fault.ToolBadInput), "it is the team's")
				continue
			}
			require.Equal(t, !slices.Contains(want, o.Name), errors.Is(err, fault.New(fault.ToolNotFound)), "%s: %s", pattern, o.Name)
		}
	}
	require.NotContains(t, s.called, cmd.ToolSendMessage)
}

// sortedLast moves the names in own to the end, in their order.
func sortedLast(all, own []string) []string {
	out := []string{}
	for _, n := range all {
		if !slices.Contains(own, n) {
			out = append(out, n)
		}
	}
	for _, n := range all {
		if slices.Contains(own, n) {
			out = append(out, n)
		}
	}
	return out
}

func TestAToolThatComesLater(t *testing.T) {
	s := &servers{}
	m := coder
	m.Tools = []string{"a/*"}
	b := toolbox(t, m, s)
	require.NotContains(t, names(t, b), "a_x")
	s.list = []tools.Tool{{Name: "a_x", Server: "a", Own: "x"}}
	r, err := b.Call(t.Context(), tools.Call{ID: "1", Tenant: id.DefaultTenant, Tool: "a_x"})
	require.NoError(t, err)
	require.Equal(t, "from a server", r.Text)
}

func TestWithoutToolServers(t *testing.T) {
	s := &servers{err: fault.New(fault.ToolsDown)}
	require.Len(t, names(t, toolbox(t, coder, s)), 5, "who uses none does not need one")
	m := coder
	m.Tools = []string{"a/*"}
	b := toolbox(t, m, s)
	_, err := b.List(t.Context(), id.DefaultTenant)
	require.ErrorIs(t, err, s.err)
	_, err = b.Call(t.Context(), tools.Call{ID: "1", Tenant: id.DefaultTenant, Tool: "a_x"})
	require.ErrorIs(t, err, s.err)
}

func TestSchemasSayWhoIsThere(t *testing.T) {
	list, err := toolbox(t, coder, &servers{}).List(t.Context(), id.DefaultTenant)
	require.NoError(t, err)
	for _, o := range list {
		require.True(t, json.Valid(o.InputSchema))
		require.True(t, o.Idempotent, o.Name)
		require.NotEmpty(t, o.Description)
		switch o.Name {
		case cmd.ToolSendMessage:
			require.Contains(t, string(o.InputSchema), `"enum":["Boss","docs"]`)
		case cmd.ToolCreateTasks:
			require.Contains(t, string(o.InputSchema), `"enum":["Boss","docs","Coder"]`)
		}
	}
}

// TestAnswers: who waits gets the answer to its own call, from its own tenant, and a
// call ends with its context.
func TestAnswers(t *testing.T) {
	conn := bustest.Single(t)
	c := newClient(t, teamtools.Config{Conn: conn, Commands: command.NewSender(conn), MaxWait: bustest.MaxWait})
	require.NoError(t, c.Start())
	b, err := c.Toolbox(coder, &servers{})
	require.NoError(t, err)
	home := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTeam, Entity: id.EntityFromExternal("the parent")}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	sent := make(chan cmd.Command, 2)
	w := command.NewWorkers(conn, command.WorkersConfig{Service: cmd.Team, Instance: id.MustName("t"), Concurrency: 1, Logger: zerolog.Nop()},
		func(_ context.Context, c cmd.Command, _ command.Delivery) error { sent <- c; return nil })
	require.NoError(t, w.Start(ctx))
	t.Cleanup(w.Stop)
	done := make(chan error, 1)
	go func() {
		r, err := b.Call(ctx, tools.Call{ID: "call_1", Tenant: coder.Tenant, Tool: cmd.ToolListTasks})
		if err == nil && r.Text != "right" {
			err = errors.New(r.Text)
		}
		done <- err
	}()
	asked := <-sent
	var act cmd.TeamAct
	require.NoError(t, asked.Decode(&act))
	require.JSONEq(t, `{}`, string(act.Arguments), "left out is empty")
	say := func(log subject.Log, d event.Data) {
		e, err := event.New(log, "aside", "test", time.Now(), d)
		require.NoError(t, err)
		raw, err := json.Marshal(e)
		require.NoError(t, err)
		publish(t, asked, raw, conn.NATS().Publish)
	}
	publish(t, asked, []byte("no event"), conn.NATS().Publish)
	say(home, event.TeamStoppedData{})
	say(home, event.TeamActedData{CallID: "call_2", Result: "of another call"})
	foreign, err := id.ParseTenant("acme")
	require.NoError(t, err)
	say(subject.Log{Tenant: foreign, Kind: id.KindTeam, Entity: home.Entity}, event.TeamActedData{CallID: "call_1", Result: "of another tenant"})
	say(subject.Log{Tenant: home.Tenant, Kind: id.KindSession, Entity: home.Entity}, event.TeamActedData{CallID: "call_1", Result: "of no team"})
	say(home, event.TeamActedData{CallID: "call_1", Result: "right"})
	say(home, event.TeamActedData{CallID: "call_1", Result: "again"})
	require.NoError(t, <-done)

	go func() {
		_, err := b.Call(ctx, tools.Call{ID: "call_3", Tenant: coder.Tenant, Tool: cmd.ToolListTasks})
		done <- err
	}()
	<-sent
	why := errors.New("stopped")
	cancel(why)
	err = <-done
	require.ErrorIs(t, err, why)
	require.ErrorIs(t, err, fault.New(fault.ToolCancelled))
	require.NoError(t, c.Stop())
	require.NoError(t, c.Stop(), "once is enough")
}

func publish(t *testing.T, asked cmd.Command, raw []byte, to func(string, []byte) error) {
	t.Helper()
	gateway, connection, err := subject.ParseReplyTo(asked.ReplyTo)
	require.NoError(t, err)
	require.NoError(t, to(subject.Direct(gateway, connection), raw))
}

// TestTodos: every list comes out whole, in its order, with ids of its own that are the
// same each time.
func TestTodos(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type item struct {
			TodoID      string `json:"todo_id,omitempty"`
			Description string `json:"description"`
			Status      string `json:"status"`
		}
		in := rapid.SliceOf(rapid.Custom(func(t *rapid.T) item {
			return item{
				rapid.SampledFrom([]string{"", "", "todo_1", "todo_2", "todo_3", "x"}).Draw(t, "id"),
				rapid.String().Draw(t, "description"), rapid.SampledFrom([]string{event.TodoPending, event.TodoDone}).Draw(t, "status"),
			}
		})).Draw(t, "list")
		raw, err := json.Marshal(map[string]any{"todos": in})
		require.NoError(t, err)
		given := map[string]int{}
		for _, i := range in {
			given[i.TodoID]++
		}
		doubled := false
		for n, times := range given {
			doubled = doubled || n != "" && times > 1
		}
		out, err := teamtools.Todos(raw)
		if doubled {
			require.ErrorIs(t, err, fault.New(fault.ToolBadInput))
			return
		}
		require.NoError(t, err)
		require.Len(t, out, len(in))
		seen := map[string]bool{}
		for i, o := range out {
			require.NotEmpty(t, o.TodoID)
			require.False(t, seen[o.TodoID])
			seen[o.TodoID] = true
			require.Equal(t, in[i].Status, o.Status)
			if in[i].TodoID != "" {
				require.Equal(t, in[i].TodoID, o.TodoID)
			}
		}
		again, err := teamtools.Todos(raw)
		require.NoError(t, err)
		require.Equal(t, out, again)
	})
}
