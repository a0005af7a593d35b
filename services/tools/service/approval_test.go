package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/signature"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/tools"
	mcpservers "github.com/waggle-dev/waggle/services/tools/mcp"
	"github.com/waggle-dev/waggle/services/tools/service"
)

var session = id.EntityFromExternal("s1")

// approve is a person's signed answer about a call in the session.
func approve(t testing.TB, s *signature.Signer, c tools.Call, yes bool) *tools.Approval {
	t.Helper()
	data, err := json.Marshal(command.AnswerQuestion{CallID: c.ID, Digest: signature.Digest(c.Tool, c.Arguments), Approved: yes})
	require.NoError(t, err)
	answer := command.Command{ID: "a", Service: command.Pipeline, Verb: command.Answer, Tenant: c.Tenant, Key: session, Principal: "ann", Data: data}
	require.NoError(t, s.Sign(&answer))
	return &tools.Approval{Kind: id.KindSession, Entity: session, Proof: answer.Proof()}
}

// ruled starts a service whose one server has the rules.
func ruled(t *testing.T, rules tools.Rules) (*rig, *signature.Signer) {
	t.Helper()
	return ruledAt(t, rules, nil)
}

// ruledAt is ruled with the bus' clock.
func ruledAt(t *testing.T, rules tools.Rules, now func() time.Time) (*rig, *signature.Signer) {
	t.Helper()
	s, v := servicetest.Keys(t, now)
	child := program("child", "good")
	child.Rules = rules
	r := launch(t, service.Config{Builtin: true, Servers: []mcpservers.Config{child}}, service.Deps{Signatures: v, Now: now})
	r.await(t, "child_effect")
	return r, s
}

// TestACallNeedsTheApprovalOfAPerson: a captured worker sends calls with no approval, a forged one, and one for anything
// else. None runs; the approved call does.
func TestACallNeedsTheApprovalOfAPerson(t *testing.T) {
	r, s := ruled(t, tools.Rules{})
	forger, _ := servicetest.Keys(t, nil)
	forgery := func(c tools.Call) tools.Call { c.Approval = approve(t, forger, c, true); return c }
	other, err := id.ParseTenant("other")
	require.NoError(t, err)
	for name, attack := range map[string]func(tools.Call) tools.Call{
		"none":  func(c tools.Call) tools.Call { return c },
		"empty": func(c tools.Call) tools.Call { c.Approval = &tools.Approval{}; return c },
		"empty, of log": func(c tools.Call) tools.Call {
			c.Approval = &tools.Approval{Kind: id.KindSession, Entity: session}
			return c
		},
		"forged":   forgery,
		"rejected": func(c tools.Call) tools.Call { c.Approval = approve(t, s, c, false); return c },
		"of another log": func(c tools.Call) tools.Call {
			c.Approval = approve(t, s, c, true)
			c.Approval.Entity = id.EntityFromExternal("s2")
			return c
		},
		"of a member": func(c tools.Call) tools.Call {
			c.Approval = approve(t, s, c, true)
			c.Approval.Kind = id.KindMember
			return c
		},
		"of another call": func(c tools.Call) tools.Call {
			c.Approval = approve(t, s, c, true)
			c.ID += "x"
			return c
		},
		"other arguments": func(c tools.Call) tools.Call {
			c.Approval = approve(t, s, c, true)
			c.Arguments = json.RawMessage(`{"file":"` + r.file("ran") + `","n":2}`)
			return c
		},
		"another tool": func(c tools.Call) tools.Call {
			c.Tool = "child_pid"
			c.Approval = approve(t, s, c, true)
			c.Tool = "child_effect"
			return c
		},
		"of another tenant": func(c tools.Call) tools.Call {
			c.Tenant = other
			c.Approval = approve(t, s, c, true)
			c.Tenant = id.DefaultTenant
			return c
		},
		"as a direct call": func(c tools.Call) tools.Call {
			c.Approval = approve(t, s, c, true)
			c.Approval.Kind = ""
			return c
		},
		"by its own name":     func(c tools.Call) tools.Call { c.Kind, c.Server, c.Tool = tools.KindMCP, "child", "effect"; return c },
		"pretending an agent": func(c tools.Call) tools.Call { c.Agent = true; return c },
	} {
		c := newCall(t, "child_effect", args{"file": r.file("ran")})
		require.Equal(t, fault.ToolDenied, r.fails(t, attack(c), fault.ToolDenied).Code, name)
	}
	require.NoFileExists(t, r.file("ran"))
	c := newCall(t, "child_effect", args{"file": r.file("ran")})
	c.Approval = approve(t, s, c, true)
	_, err = r.Call(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, 1, r.ran(t, "ran"))
}

// TestAnApprovalIsForTheToolThatWasShown: a call for which people were shown another tool does not run, whatever changed of
// it, and neither does one that waited while the server came back with another tool.
func TestAnApprovalIsForTheToolThatWasShown(t *testing.T) {
	r, s := ruled(t, tools.Rules{})
	shown := r.await(t, "child_effect")
	for name, change := range map[string]func(*tools.Tool){
		"description": func(t *tools.Tool) { t.Description += "!" },
		"title":       func(t *tools.Tool) { t.Title = "x" },
		"arguments":   func(t *tools.Tool) { t.InputSchema = json.RawMessage(`{"type":"object"}`) },
		"results":     func(t *tools.Tool) { t.OutputSchema = json.RawMessage(`{"type":"object"}`) },
		"a hint":      func(t *tools.Tool) { t.ReadOnly = true },
		"another":     func(t *tools.Tool) { t.Idempotent = true },
	} {
		other := shown
		change(&other)
		c := newCall(t, "child_effect", args{"file": r.file("ran")})
		c.Approval = approve(t, s, c, true)
		c.Approval.Definition = other.Definition()
		require.Contains(t, r.fails(t, c, fault.ToolDenied).Public(), "has changed since this call was shown", name)
	}
	require.NoFileExists(t, r.file("ran"))
	c := newCall(t, "child_effect", args{"file": r.file("ran")})
	c.Approval = approve(t, s, c, true)
	c.Approval.Definition = shown.Definition()
	_, err := r.Call(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, 1, r.ran(t, "ran"))

	respelled := shown
	respelled.InputSchema = json.RawMessage(" " + string(shown.InputSchema) + " ")
	respelled.Policy.Approval = event.ApprovalAlways
	require.Equal(t, shown.Definition(), respelled.Definition(), "the form of a schema and the operator's policy are no change of the tool")
}

// A call that waits for its server to come back does not run a tool that has changed meanwhile.
func TestAToolThatChangesWhileACallWaits(t *testing.T) {
	var now atomic.Pointer[script]
	now.Store(&script{Pages: []string{`{"tools":[{"name":"a","description":"old"}]}`}, Result: `{"content":"done"}`})
	var away atomic.Bool
	left := make(chan struct{}, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if away.Load() {
			select {
			case left <- struct{}{}:
			default:
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		now.Load().ServeHTTP(w, req)
	}))
	t.Cleanup(srv.Close)
	s, v := servicetest.Keys(t, nil)
	r := launch(t, service.Config{Servers: []mcpservers.Config{{Name: "odd", URL: srv.URL}}}, service.Deps{Signatures: v})
	shown := r.await(t, "odd_a")
	approved := func() tools.Call {
		c := newCall(t, "odd_a", nil)
		c.Approval = approve(t, s, c, true)
		c.Approval.Definition = shown.Definition()
		return c
	}
	_, err := r.Call(t.Context(), approved())
	require.NoError(t, err)
	away.Store(true)
	ended := make(chan error, 1)
	go func() {
		_, err := r.Call(context.WithoutCancel(t.Context()), approved())
		ended <- err
	}()
	<-left
	now.Store(&script{Pages: []string{`{"tools":[{"name":"a","description":"new"}]}`}, Result: `{"content":"done"}`})
	away.Store(false)
	if err := <-ended; !errors.Is(err, fault.New(fault.ToolsDown)) { // a call does not wait for ever
		require.Contains(t, isFault(t, err, fault.ToolDenied).Public(), "has changed since this call was shown")
	}
	r.fails(t, approved(), fault.ToolDenied)
}

// TestAServersWordIsNoApproval: the hint that a tool changes nothing counts only if the operator says so.
func TestAServersWordIsNoApproval(t *testing.T) {
	for name, c := range map[string]struct {
		rules tools.Rules
		runs  bool
	}{
		"default":   {tools.Rules{}, false},
		"trusted":   {tools.Rules{Hints: true}, true},
		"read only": {tools.Rules{ReadOnly: []string{"echo"}}, true},
		"always":    {tools.Rules{Hints: true, Approval: event.ApprovalAlways}, false},
		"never":     {tools.Rules{Approval: event.ApprovalNever}, true},
		"one tool":  {tools.Rules{Approval: event.ApprovalNever, Approvals: map[string]string{"echo": event.ApprovalAlways}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := ruled(t, c.rules)
			call := newCall(t, "child_echo", args{"text": "x"})
			if !c.runs {
				r.fails(t, call, fault.ToolDenied)
				return
			}
			_, err := r.Call(t.Context(), call)
			require.NoError(t, err)
			call = newCall(t, "child_echo", args{"text": "x"})
			call.Asked = true
			r.fails(t, call, fault.ToolDenied)
		})
	}
}

// TestWhoCallsDirectly: a person who names the tool and its arguments has decided; an agent cannot, and calls what the
// operator has opened to agents.
func TestWhoCallsDirectly(t *testing.T) {
	r, s := ruled(t, tools.Rules{})
	c := direct(t, r)
	r.fails(t, c, fault.ToolDenied)
	c.Agent = true
	require.Contains(t, r.fails(t, c, fault.ToolDenied).Message, "tools.servers[].agents")
	c = direct(t, r)
	c.Approval = prove(t, s, c)
	changed := c
	changed.Arguments = json.RawMessage(`{"n":2}`)
	r.fails(t, changed, fault.ToolDenied)
	require.NoFileExists(t, r.file("ran"))
	_, err := r.Call(t.Context(), c)
	require.NoError(t, err)

	r, _ = ruled(t, tools.Rules{Agents: true})
	c = direct(t, r)
	c.Agent = true
	_, err = r.Call(t.Context(), c)
	require.NoError(t, err)
}

// TestADirectCallIsDatedByTheBusClock: the clock of the tool service's machine is wrong by an hour.
func TestADirectCallIsDatedByTheBusClock(t *testing.T) {
	r, s := ruledAt(t, tools.Rules{}, func() time.Time { return time.Now().Add(time.Hour) })
	c := direct(t, r)
	c.Approval = prove(t, s, c)
	_, err := r.Call(t.Context(), c)
	require.NoError(t, err)
}

// direct is a call of one tool of the server, which it names.
func direct(t *testing.T, r *rig) tools.Call {
	t.Helper()
	c := newCall(t, "effect", args{"file": r.file("ran")})
	c.Kind, c.Server = tools.KindMCP, "child"
	return c
}

// prove is a person's signed request for the direct call.
func prove(t *testing.T, s *signature.Signer, c tools.Call) *tools.Approval {
	t.Helper()
	p, err := s.Call(c.Tenant, "ann", command.ToolRequest{CallID: c.ID, Kind: c.Kind, Server: c.Server, Tool: c.Tool, Arguments: c.Arguments})
	require.NoError(t, err)
	return &tools.Approval{Proof: p}
}

// TestTheBuiltInToolsRunUnasked, until the caller has read untrusted output.
func TestTheBuiltInToolsRunUnasked(t *testing.T) {
	r, _ := ruled(t, tools.Rules{})
	write := func() tools.Call { return newCall(t, "workspace_write_file", args{"path": "x", "content": "y"}) }
	_, err := r.Call(t.Context(), write())
	require.NoError(t, err)
	c := write()
	c.Tainted = true
	r.fails(t, c, fault.ToolDenied)
	c = newCall(t, "workspace_read_file", args{"path": "x"})
	c.Tainted = true
	_, err = r.Call(t.Context(), c)
	require.NoError(t, err)
}
