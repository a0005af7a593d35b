//go:build nightly

package e2e_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	auditlog "github.com/waggle-dev/waggle/internal/audit"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// connect connects to the bus as the services do.
func (f *fleet) connect() *bus.Conn {
	f.t.Helper()
	c, err := bus.Connect(f.t.Context(), bus.Config{URL: f.nats, Name: f.t.Name()})
	require.NoError(f.t, err)
	f.t.Cleanup(c.Close)
	return c
}

// counted adds up what the ledger of quotas has of a resource.
func (f *fleet) counted(c *bus.Conn, resource id.Name) (sum int64) {
	f.t.Helper()
	kv, err := c.JS().KeyValue(f.t.Context(), subject.QuotaBucket(resource))
	require.NoError(f.t, err)
	w, err := kv.Watch(f.t.Context(), subject.QuotaKeys(resource), jetstream.IgnoreDeletes())
	require.NoError(f.t, err)
	defer func() { _ = w.Stop() }()
	for e := range w.Updates() {
		if e == nil {
			return sum
		}
		n, err := strconv.ParseInt(string(e.Value()), 10, 64)
		require.NoError(f.t, err)
		sum += n
	}
	return sum
}

// TestABudgetSurvivesItsWorker: a worker is killed in the middle of a run. The worker
// that continues neither loses nor repeats the usage of the run and of the tenant's day: the
// run stops where it would have stopped.
func TestABudgetSurvivesItsWorker(t *testing.T) {
	f := newFleet(t, func(x *scripted.Exchange) scripted.Reply {
		switch x.N {
		case 3:
			return scripted.Stream(scripted.Text("half an "), scripted.Hang())
		default:
			return scripted.Stream(scripted.Calls(0, scripted.Call{
				ID: "call_" + strconv.Itoa(x.N), Name: "workspace_list_files", Arguments: `{}`,
			}), scripted.Usage(15, 10))
		}
	})
	f.configure(`
models:
  prices: [{model: scripted, input: 1000, output: 1000}]
budget: {tokens: 1000, cost_usd: 10, tool_calls: 3, time: 1h}
quota:
  tenant: {tokens: 120, cost_usd: 10, tool_calls: 100, time: 1h}
`)
	f.serve("session,pipeline,tools")
	doomed := f.serve("worker")
	_, addr := f.gateway()
	c := f.connect()
	viewer := client.DialOrbit(t, "ws://"+addr+"/ws?deltas=true")
	viewer.Until("agent_ready")
	viewer.Ask("look around")
	viewer.Until("agent_delta")
	require.EqualValues(t, 50, f.counted(c, audit.Tokens))
	doomed.Kill()
	f.serve("worker")
	viewer.Until("error")
	failed := f.lastFailure(c, viewer.Session)
	require.Equal(t, "BUDGET_EXCEEDED", failed.Code, failed.Message)
	require.Equal(t, event.BudgetToolCalls, failed.Budget.Resource)
	require.Equal(t, 3, failed.Budget.ToolCalls)
	require.EqualValues(t, 100, failed.Budget.Tokens, "four messages: two of each worker")
	require.InDelta(t, 0.1, failed.Budget.CostUSD, 1e-9)
	require.EqualValues(t, 100, f.counted(c, audit.Tokens))
	require.EqualValues(t, 100_000_000, f.counted(c, audit.CostUSD), "in billionths")
	require.EqualValues(t, 3, f.counted(c, audit.ToolCalls))
	require.Positive(t, f.counted(c, audit.Time))

	viewer.Ask("look again")
	viewer.Until("error")
	failed = f.lastFailure(c, viewer.Session)
	require.Equal(t, "QUOTA_EXCEEDED", failed.Code)
	require.Contains(t, failed.Message, "125 of 120 tokens of today")
	var refused []audit.Record
	process.Eventually(t, "the refusal is in the audit log", func() bool {
		refused = nil
		err := auditlog.Read(t.Context(), c, auditlog.Query{Action: audit.QuotaRefused.String()}, func(r audit.Record) error {
			refused = append(refused, r)
			return nil
		})
		return err == nil && len(refused) > 0
	})
	require.Len(t, refused, 1)
	require.Equal(t, "tokens", refused[0].Resource)
	require.InDelta(t, 120, refused[0].Limit, 0)
	require.InDelta(t, 125, refused[0].Used, 0)
}

// lastFailure returns how the last run of a session failed.
func (f *fleet) lastFailure(c *bus.Conn, session string) (out event.RunFailedData) {
	f.t.Helper()
	s, err := eventlog.New(c, eventlog.Options{Logger: zerolog.Nop()})
	require.NoError(f.t, err)
	defer s.Close()
	log := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal(session)}
	require.NoError(f.t, s.Read(f.t.Context(), log, eventlog.Cursor{}, func(e *eventlog.Entry) error {
		if e.Type != event.RunFailed {
			return nil
		}
		return json.Unmarshal(e.Data, &out)
	}))
	return out
}

// TestPlacesSurviveTheirService: two replicas of each service keep one quota of open
// tasks and of open teams, also when one of them is killed, and what ends makes room.
func TestPlacesSurviveTheirService(t *testing.T) {
	t.Parallel() // it waits for the lease of who was killed
	f := newFleet(t, nil)
	f.configure("\nquota: {tenant: {tasks: 2, teams: 2}}\n")
	c := &teamFleet{fleet: f}
	f.serve("session,pipeline,worker,tools")
	doomed := f.serve("task,team")
	_, c.addr = f.gateway()
	h := swarmRig{t: t, addr: c.addr}
	teams := func() int { return process.Get(t, "http://"+c.addr+"/api/v1/teams").Status }
	process.Eventually(t, "the team service runs", func() bool { return teams() == http.StatusOK })
	agent := h.agent("slow", "Slow", nil, "waiting")
	asker := h.client()
	submit := func() client.SwarmFrame {
		return asker.Ask("client.agent.task.create.request", object{"agentName": "Slow", "taskData": object{"wait": true}})
	}
	definition := object{"name": "pair", "coordinator": "Ann", "members": []object{{"name": "Ann", "role": "does it", "instructions": "Do it."}}}
	one := c.found(definition)
	c.found(definition)
	for range 2 {
		require.Equal(t, "client.agent.task.create.response", submit().Type)
	}
	task := agent.Until("task.execute")
	full := func() {
		t.Helper()
		require.Contains(t, string(submit().Content), "Your tenant has used up the quota of 2 open tasks")
		c.ask(http.MethodPost, "/api/v1/teams", definition, http.StatusTooManyRequests, nil)
	}
	full()
	f.serve("task,team")
	doomed.Kill()
	process.Eventually(t, "the other replica answers", func() bool { return teams() == http.StatusOK })
	full()
	c.ask(http.MethodDelete, "/api/v1/teams/"+one.TeamID, nil, http.StatusOK, nil)
	agent.Say("agent.task.result", object{"taskId": task.Text("taskId"), "result": object{"ok": true}})
	asker.Until("client.agent.task.result")
	raw, err := json.Marshal(definition)
	require.NoError(t, err)
	process.Eventually(t, "a team that is shut down makes room", func() bool {
		return strings.Contains(post(t, "http://"+c.addr+"/api/v1/teams", "", string(raw)), "pair")
	})
	process.Eventually(t, "a task that has ended makes room", func() bool { return submit().Type == "client.agent.task.create.response" })
	full()
}
