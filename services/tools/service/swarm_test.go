package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/service"
	"github.com/waggle-dev/waggle/services/tools/swarm"
)

// TestServices is the conformance suite of services as providers of tools, within the process and over the bus.
func TestServices(t *testing.T) {
	for name, overBus := range map[string]bool{"in process": false, "on the bus": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newField(t, service.Config{Builtin: true}, overBus)
			for name, test := range map[string]func(*testing.T, *field){
				"list":           servicesListed,
				"tenants":        servicesOfTenants,
				"result":         serviceResults,
				"notifications":  serviceNotifications,
				"arguments":      serviceArguments,
				"output":         serviceOutput,
				"errors":         serviceErrors,
				"not there":      serviceNotThere,
				"status":         serviceStatus,
				"lost":           serviceLost,
				"elsewhere":      serviceElsewhere,
				"replaced":       serviceReplaced,
				"timeout":        serviceTimeout,
				"cancel":         serviceCancelled,
				"repeated id":    serviceRepeated,
				"shared":         serviceShared,
				"hanging":        serviceHangs,
				"floods":         serviceFloods,
				"stray messages": serviceStray,
				"large results":  serviceLarge,
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					test(t, f)
				})
			}
		})
	}
}

// Models are offered the tools of the services that the operator has listed; agents find those of all.
func TestModelsAreOfferedListedServicesOnly(t *testing.T) {
	t.Parallel()
	for name, listed := range map[string][]string{"none": {}, "by id": {"calc"}, "by name": {"The calc"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newField(t, service.Config{Services: listed}, true)
			f.connect(t, serviceOf("calc"), echoes)
			f.connect(t, serviceOf("stranger"), echoes)
			all, err := f.box().List(t.Context(), id.DefaultTenant)
			require.NoError(t, err)
			for _, o := range all {
				require.Equal(t, "calc", o.Server)
			}
			require.Equal(t, len(listed) > 0, len(all) > 0)
			for server, want := range map[string]bool{"calc": len(listed) > 0, "stranger": false} {
				_, own, err := f.box().ToolsOf(t.Context(), id.DefaultTenant, tools.KindService, server)
				require.NoError(t, err, "agents find it")
				_, err = f.Call(t.Context(), tools.Call{ID: server, Tenant: id.DefaultTenant, Tool: own[0].Name, Arguments: json.RawMessage(`{}`)})
				if want {
					require.NoError(t, err)
				} else {
					require.Equal(t, fault.ToolNotFound, fault.From(err, "").Code, "a model that guesses the name")
				}
			}
		})
	}
}

// A request finds a service that its sender has seen, even if the copy of the directory at the tool service lags behind.
func TestAServiceIsFoundAtOnce(t *testing.T) {
	t.Parallel()
	f := newField(t, service.Config{Builtin: true}, true)
	for i := range 50 {
		p := serviceOf(fmt.Sprint("new", i))
		p.Kind, p.Tenant, p.Status, p.Online = command.ParticipantService, id.DefaultTenant, command.StatusActive, true
		data, err := json.Marshal(p)
		require.NoError(t, err)
		_, err = f.dir.Join(t.Context(), directory.Member{
			What: command.WhatService, Name: f.gw, Instance: id.MustName(p.ID), Data: data,
		})
		require.NoError(t, err)
		server, _, err := f.box().ToolsOf(directory.Seen(t.Context(), f.dir.Revision()), id.DefaultTenant, tools.KindService, p.ID)
		require.NoError(t, err)
		require.Equal(t, p.ID, server.ID)
	}
	_, err := f.box().Servers(directory.Seen(t.Context(), f.dir.Revision()+1_000), id.DefaultTenant, "")
	isFault(t, err, fault.ToolsDown)
}

func servicesListed(t *testing.T, f *field) {
	d := serviceOf("lister")
	d.Description, d.Extra = "lists", json.RawMessage(`{"version":"7"}`)
	d.Tools = append(d.Tools,
		command.ParticipantTool{ID: "plain"}, command.ParticipantTool{ID: "broken", InputSchema: json.RawMessage(`{"$ref":"#"}`)},
		command.ParticipantTool{ID: "broken out", OutputSchema: json.RawMessage(`{"anyOf":[{"$ref":"#"}]}`)},
		command.ParticipantTool{ID: "no object", InputSchema: json.RawMessage(`7`)},
		command.ParticipantTool{ID: "exponential", InputSchema: json.RawMessage(exponential(60))},
		command.ParticipantTool{ID: "exponential out", OutputSchema: json.RawMessage(exponential(60))})
	f.connect(t, d, silent)
	all, err := f.box().List(t.Context(), id.DefaultTenant)
	require.NoError(t, err)
	var names []string
	for _, o := range all {
		if o.Server == "lister" {
			require.Equal(t, tools.KindService, o.Kind)
			names = append(names, o.Name)
		}
	}
	require.Equal(t, []string{"lister_again", "lister_plain", "lister_strict"}, names)

	server, list, err := f.box().ToolsOf(t.Context(), id.DefaultTenant, tools.KindService, "lister")
	require.NoError(t, err)
	require.Equal(t, "The lister", server.Name)
	require.Equal(t, []string{"one", "two"}, server.Capabilities)
	require.Equal(t, command.StatusActive, server.Status)
	require.Equal(t, 1, server.Replicas)
	require.JSONEq(t, `{"version":"7"}`, string(server.Extra))
	require.Len(t, list, 3)
	require.Equal(t, "Plain tool", list[1].Title)
	require.JSONEq(t, `{"type":"object"}`, string(list[1].InputSchema))
	require.True(t, list[0].Idempotent)
	require.JSONEq(t, string(d.Tools[2].OutputSchema), string(list[2].OutputSchema))
	named, _, err := f.box().ToolsOf(t.Context(), id.DefaultTenant, tools.KindService, "The lister")
	require.NoError(t, err)
	require.Equal(t, server.ID, named.ID)

	servers, err := f.box().Servers(t.Context(), id.DefaultTenant, "")
	require.NoError(t, err)
	require.Contains(t, servers, server)
	require.Equal(t, "workspace", servers[0].ID)
	require.Equal(t, "filesystem", servers[0].Type)
	mcp, err := f.box().Servers(t.Context(), id.DefaultTenant, tools.KindMCP)
	require.NoError(t, err)
	require.Len(t, mcp, 1)
}

func servicesOfTenants(t *testing.T, f *field) {
	acme, err := id.ParseTenant("acme")
	require.NoError(t, err)
	theirs := serviceOf("private")
	theirs.Tenant = acme
	f.connect(t, theirs, answers(`"theirs"`))
	f.fails(t, ask(t, "private", "plain", nil), fault.ServiceNotFound)
	f.fails(t, newCall(t, "private_plain", nil), fault.ToolNotFound)
	_, _, err = f.box().ToolsOf(t.Context(), id.DefaultTenant, tools.KindService, "private")
	isFault(t, err, fault.ServiceNotFound)
	ours := f.connect(t, serviceOf("private"), answers(`"ours"`))
	require.Equal(t, "ours", f.call(t, "private_plain", nil))
	ours.given()
	c := newCall(t, "private_plain", nil)
	c.Tenant = acme
	res, err := f.Call(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, "theirs", res.Text)
	list, err := f.box().List(t.Context(), acme)
	require.NoError(t, err)
	for _, o := range list {
		require.True(t, strings.HasPrefix(o.Name, "private_") || o.Server == "workspace", o.Name)
	}
}

func serviceResults(t *testing.T, f *field) {
	p := f.connect(t, serviceOf("results"), echoes)
	c := ask(t, "results", "plain", args{"x": "<1>"})
	c.TaskID, c.AgentID, c.ClientID, c.Priority = "task", "agent", "client", "high"
	res, err := f.Call(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, tools.Result{Data: json.RawMessage(`{"x":"<1>"}`), Bytes: 11}, tools.Result{Data: compact(t, res.Data), Bytes: len(compact(t, res.Data))})
	got := p.given()
	require.Equal(t, []string{"task", "agent", "client", "high", "plain"}, []string{got.TaskID, got.AgentID, got.ClientID, got.Priority, got.Tool})
	require.False(t, got.Deadline.IsZero())
	require.JSONEq(t, `{"x":"<1>"}`, f.call(t, "results_plain", args{"x": "<1>"}))
	byName := ask(t, "The results", "Plain tool", nil)
	byName.Arguments = nil
	res, err = f.Call(t.Context(), byName)
	require.NoError(t, err)
	require.JSONEq(t, `{}`, string(res.Data), "no arguments are an empty object")
	f.connect(t, serviceOf("results-null"), answers("null"))
	res, err = f.Call(t.Context(), ask(t, "results-null", "plain", nil))
	require.NoError(t, err)
	require.Equal(t, "null", string(res.Data))
}

func compact(t testing.TB, raw json.RawMessage) json.RawMessage {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal(raw, &v))
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(v))
	return json.RawMessage(strings.TrimSpace(b.String()))
}

func serviceNotifications(t *testing.T, f *field) {
	const n = 20
	f.connect(t, serviceOf("notes"), func(p *participant, c event.CallRequestedData) {
		for i := range n {
			p.say(c, command.CallNews{Notification: &event.CallNotifiedData{
				NotificationType: "progress", Message: fmt.Sprint(i), Data: json.RawMessage(`{"a":1}`),
			}})
		}
		p.say(c, command.CallNews{Final: true, Result: json.RawMessage(`1`)})
	})
	var told []string
	res, err := f.box().CallWith(t.Context(), ask(t, "notes", "plain", nil), func(n tools.Notification) {
		told = append(told, n.Type+n.Message)
		if string(n.Data) != `{"a":1}` || n.At.IsZero() {
			t.Errorf("%+v", n)
		}
	})
	require.NoError(t, err)
	require.Equal(t, "1", string(res.Data))
	var want []string
	for i := range n {
		want = append(want, fmt.Sprint("progress", i))
	}
	require.Equal(t, want, told)
	_, err = f.Call(t.Context(), ask(t, "notes", "plain", nil))
	require.NoError(t, err, "nobody has to listen")
}

func serviceArguments(t *testing.T, f *field) {
	p := f.connect(t, serviceOf("arguments"), answers(`{"sum":3}`))
	for in, field := range map[string]string{`{"a":[1,"x"]}`: "/a/1", `{}`: "", `{"a":1}`: "/a", `[]`: ""} {
		c := ask(t, "arguments", "strict", nil)
		c.Arguments = json.RawMessage(in)
		require.Equal(t, field, f.fails(t, c, fault.ToolBadInput).Field, in)
	}
	require.Empty(t, p.calls, "the service hears nothing of it")
	_, err := f.Call(t.Context(), ask(t, "arguments", "strict", args{"a": []int{1, 2}}))
	require.NoError(t, err)
}

func serviceOutput(t *testing.T, f *field) {
	for result, field := range map[string]string{`{"sum":"3"}`: "/sum", `{}`: "", `7`: ""} {
		name := fmt.Sprintf("output-%d", len(result))
		f.connect(t, serviceOf(name), answers(result))
		require.Equal(t, field, f.fails(t, ask(t, name, "strict", args{"a": []int{}}), fault.BadOutput).Field, result)
		_, err := f.Call(t.Context(), ask(t, name, "plain", nil))
		require.NoError(t, err, "a tool that promises nothing may say anything")
	}
}

func serviceErrors(t *testing.T, f *field) {
	for code, want := range map[string]fault.Code{
		"TASK_EXECUTION_ERROR": fault.ToolFailed, "INVALID_OUTPUT": fault.BadOutput, "OUT_OF_PAPER": fault.ToolFailed, "INTERNAL": fault.ToolFailed,
		"MESSAGE_TOO_BIG": fault.MessageTooBig,
	} {
		name := "errors-" + strings.ToLower(strings.ReplaceAll(code, "_", "-"))
		f.connect(t, serviceOf(name), func(p *participant, c event.CallRequestedData) {
			p.say(c, command.CallNews{Final: true, Code: code, Error: "no paper " + strings.Repeat("x", 10_000)})
		})
		got := f.fails(t, ask(t, name, "again", nil), want)
		require.Contains(t, got.Message, "no paper")
		require.Less(t, len(got.Message), 5000)
	}
	for details, kept := range map[string]string{
		`{"code":"OUT_OF_PAPER"}`: `{"code":"OUT_OF_PAPER"}`, `"` + strings.Repeat("x", 5000) + `"`: "",
	} {
		name := fmt.Sprintf("details-%d", len(details))
		f.connect(t, serviceOf(name), func(p *participant, c event.CallRequestedData) {
			p.say(c, command.CallNews{Final: true, Code: string(fault.ToolFailed), Error: "no paper", Details: json.RawMessage(details)})
		})
		require.Equal(t, kept, string(f.fails(t, ask(t, name, "again", nil), fault.ToolFailed).Details))
	}
}

func serviceNotThere(t *testing.T, f *field) {
	f.connect(t, serviceOf("there"), silent)
	f.fails(t, ask(t, "not-there", "plain", nil), fault.ServiceNotFound)
	f.fails(t, ask(t, "", "plain", nil), fault.ServiceNotFound)
	f.fails(t, ask(t, "there", "nothing", nil), fault.ToolNotFound)
	f.fails(t, newCall(t, "there_nothing", nil), fault.ToolNotFound)
	c := ask(t, "there", "plain", nil)
	c.Kind = tools.KindMCP
	f.fails(t, c, fault.ServerNotFound)
	c.Kind = "else"
	require.Equal(t, "kind", f.fails(t, c, fault.ToolBadInput).Field)
	for _, kind := range []string{"", "else"} {
		_, _, err := f.box().ToolsOf(t.Context(), id.DefaultTenant, kind, "there")
		isFault(t, err, fault.ToolBadInput)
	}
	_, _, err := f.box().ToolsOf(t.Context(), id.DefaultTenant, tools.KindMCP, "there")
	isFault(t, err, fault.ServerNotFound)
}

func serviceStatus(t *testing.T, f *field) {
	p := f.connect(t, serviceOf("status"), answers(`"first"`))
	for _, status := range []string{command.StatusBusy, command.StatusInitializing, command.StatusMaintenance, command.StatusInactive, command.StatusError} {
		p.set(func(d *command.Participant) { d.Status = status })
		p.seen(func(s tools.Server) bool { return s.ID == "status" && s.Status == status })
		f.fails(t, ask(t, "status", "again", nil), fault.ServiceBusy)
	}
	p.set(func(d *command.Participant) { d.Status, d.Online = command.StatusActive, false })
	p.seen(func(s tools.Server) bool { return s.ID == "status" && s.Status == command.StatusInactive })
	f.fails(t, ask(t, "status", "plain", nil), fault.ServiceBusy)
	require.Empty(t, p.calls)
	f.connect(t, serviceOf("status"), answers(`"second"`))
	p.seen(func(s tools.Server) bool {
		return s.ID == "status" && s.Replicas == 2 && s.Status == command.StatusActive
	})
	require.Equal(t, "second", f.call(t, "status_plain", nil))
}

func serviceLost(t *testing.T, f *field) {
	p := f.connect(t, serviceOf("lost"), func(p *participant, _ event.CallRequestedData) { p.leave() })
	other := f.connect(t, func() command.Participant { d := serviceOf("lost"); d.Load = 5; return d }(), answers(`"other"`))
	p.seen(func(s tools.Server) bool { return s.ID == "lost" && s.Replicas == 2 })
	c := ask(t, "lost", "plain", nil)
	f.fails(t, c, fault.ServiceLost)
	f.fails(t, c, fault.ServiceLost)
	require.Len(t, p.calls, 1)
	require.Empty(t, other.calls, "a tool that is not idempotent is not repeated")
}

func serviceElsewhere(t *testing.T, f *field) {
	for how, do := range map[string]reaction{
		"leaves": func(p *participant, _ event.CallRequestedData) { p.leave() },
		"gateway-tells": func(p *participant, c event.CallRequestedData) {
			p.say(c, command.CallNews{Final: true, Code: string(fault.ServiceLost)})
		},
		"offline": func(p *participant, _ event.CallRequestedData) {
			p.set(func(d *command.Participant) { d.Online = false })
		},
	} {
		p := f.connect(t, serviceOf(how), do)
		other := f.connect(t, func() command.Participant { d := serviceOf(how); d.Load = 5; return d }(), answers(`"other"`))
		p.seen(func(s tools.Server) bool { return s.ID == how && s.Replicas == 2 })
		res, err := f.Call(t.Context(), ask(t, how, "again", nil))
		require.NoError(t, err, how)
		require.JSONEq(t, `"other"`, string(res.Data), how)
		require.Equal(t, p.given().CallID, other.given().CallID, "a service may know the call again")
	}
}

// A service has time to come back, as long as its users wait for it.
func TestAServiceComesBack(t *testing.T) {
	t.Parallel()
	for name, overBus := range map[string]bool{"in process": false, "on the bus": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			serviceComesBack(t, newField(t, service.Config{Waits: swarm.Waits{Confirm: maxWait, Lost: maxWait / 200, Return: maxWait}}, overBus))
		})
	}
}

func serviceComesBack(t *testing.T, f *field) {
	var once sync.Once
	back := make(chan *participant, 1)
	f.connect(t, serviceOf("comes-back"), func(p *participant, _ event.CallRequestedData) {
		once.Do(func() {
			p.leave()
			back <- f.connect(t, serviceOf("comes-back"), answers(`"again"`))
		})
	})
	res, err := f.Call(t.Context(), ask(t, "comes-back", "again", nil))
	require.NoError(t, err)
	require.JSONEq(t, `"again"`, string(res.Data))
	<-back
}

// The entry stays with another connection: the connection that had the call is gone.
func serviceReplaced(t *testing.T, f *field) {
	p := f.connect(t, serviceOf("replaced"), func(p *participant, _ event.CallRequestedData) {
		p.set(func(d *command.Participant) { d.Connection = "elsewhere" })
	})
	f.fails(t, ask(t, "replaced", "plain", nil), fault.ServiceLost)
	require.Len(t, p.calls, 1)
	f.fails(t, ask(t, "replaced", "again", nil), fault.ServiceBusy)
	p.set(func(d *command.Participant) { d.Connection = "not a token" })
	f.fails(t, ask(t, "replaced", "plain", nil), fault.ServiceBusy)
}

func serviceTimeout(t *testing.T, f *field) {
	p := f.connect(t, serviceOf("timeout"), silent)
	c := ask(t, "timeout", "plain", nil)
	c.Timeout = maxWait / 12 // the service has to hear of the call before
	f.fails(t, c, fault.ToolTimeout)
	f.fails(t, c, fault.ToolTimeout)
	require.Len(t, p.calls, 1, "a call without effect known is not repeated")
	answers(`"too late"`)(p, p.given())
}

// TestDeadlinesOfServicesFollowTheBusClock: the clock of the machine is wrong. A gateway drops calls whose deadline is over by the bus' clock.
func TestDeadlinesOfServicesFollowTheBusClock(t *testing.T) {
	t.Parallel()
	clock := func() time.Time { return time.Now().Add(time.Hour) }
	f := newFieldAt(t, service.Config{}, false, clock)
	p := f.connect(t, serviceOf("calc"), echoes)
	c := ask(t, "calc", "plain", args{"x": "y"})
	c.Timeout = maxWait
	before := clock()
	_, err := f.Call(t.Context(), c)
	require.NoError(t, err)
	got := p.given()
	require.WithinRange(t, got.Deadline, before, clock().Add(c.Timeout))
}

func serviceCancelled(t *testing.T, f *field) {
	p := f.connect(t, serviceOf("cancelled"), silent)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		p.given()
		cancel()
	}()
	_, err := f.Call(ctx, ask(t, "cancelled", "plain", nil))
	isFault(t, err, fault.ToolCancelled)
}

func serviceRepeated(t *testing.T, f *field) {
	p := f.connect(t, serviceOf("repeated"), answers(`"done"`))
	c := ask(t, "repeated", "plain", nil)
	for range 3 {
		_, err := f.Call(t.Context(), c)
		require.NoError(t, err)
	}
	require.Len(t, p.calls, 1)
	c.Raw = false
	f.fails(t, c, fault.ToolBadInput)
	c.Scope = "another"
	_, err := f.Call(t.Context(), c)
	require.NoError(t, err)
	require.NotEqual(t, p.given().CallID, p.given().CallID)
}

func serviceShared(t *testing.T, f *field) {
	const n = 3
	release := make(chan struct{})
	var all []*participant
	for range n {
		all = append(all, f.connect(t, serviceOf("shared"), func(p *participant, c event.CallRequestedData) {
			<-release
			answers(`"ok"`)(p, c)
		}))
	}
	all[0].seen(func(s tools.Server) bool { return s.ID == "shared" && s.Replicas == n })
	var calls sync.WaitGroup
	for range 2 * n {
		calls.Go(func() {
			if _, err := f.Call(context.Background(), ask(t, "shared", "plain", nil)); err != nil {
				t.Error(err)
			}
		})
	}
	for _, p := range all {
		p.given()
		p.given()
	}
	close(release)
	calls.Wait()
	for _, p := range all {
		require.Empty(t, p.calls)
	}
	for _, p := range all { // In sequence: the replica that has been idle for longest is next.
		_, err := f.Call(t.Context(), ask(t, "shared", "plain", nil))
		require.NoError(t, err)
		_ = p
	}
	for _, p := range all {
		require.Len(t, p.calls, 1)
	}
}

func TestServiceCallsAreCounted(t *testing.T) {
	t.Parallel()
	f := newField(t, service.Config{}, false)
	f.connect(t, serviceOf("counted"), answers(`"ok"`))
	f.call(t, "counted_plain", nil)
	f.fails(t, ask(t, "counted", "strict", nil), fault.ToolBadInput)
	require.NoError(t, testutil.GatherAndCompare(f.reg, strings.NewReader(`
# HELP waggle_tools_calls_total Tool calls that ended, by server and outcome.
# TYPE waggle_tools_calls_total counter
waggle_tools_calls_total{outcome="invalid_input",server="services"} 1
waggle_tools_calls_total{outcome="ok",server="services"} 1
`), "waggle_tools_calls_total"))
}
