package swarm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools/internal/offer"
	"github.com/waggle-dev/waggle/services/tools/schema"
)

func TestChooseProperty(t *testing.T) {
	epoch := time.Unix(1_800_000_000, 0)
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) candidate {
			return candidate{
				id: rapid.StringN(1, 3, -1).Draw(t, "id"), load: rapid.IntRange(0, 3).Draw(t, "load"),
				idle: epoch.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "idle")) * time.Second),
			}
		}), 0, 8, func(c candidate) string { return c.id }).Draw(t, "list")
		i := choose(list)
		if len(list) == 0 {
			require.Equal(t, -1, i)
			return
		}
		got := list[i]
		for _, c := range list {
			require.LessOrEqual(t, got.load, c.load, "the least loaded")
			if c.load == got.load {
				require.False(t, c.idle.Before(got.idle), "of these the one that has been idle for longest")
			}
		}
		mixed := rapid.Permutation(list).Draw(t, "mixed")
		require.Equal(t, got, mixed[choose(mixed)], "whatever the order")
	})
}

// Replicas of one service get calls in turn, regardless of the calls' durations.
func TestTakeProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, key, all := stage(t, rapid.IntRange(1, 5).Draw(t, "replicas"))
		held := map[string][]*replica{}
		usable := func(r *replica) bool { return r.participant.Online && r.participant.Status == command.StatusActive }
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "end one") {
				ids := []string{}
				for id := range held {
					ids = append(ids, id)
				}
				slices.Sort(ids)
				if len(ids) > 0 {
					id := rapid.SampledFrom(ids).Draw(t, "who")
					w.release(key, held[id][0])
					if held[id] = held[id][1:]; len(held[id]) == 0 {
						delete(held, id)
					}
				}
				continue
			}
			r, err := w.take(key, "t", nil)
			if err != nil {
				var f *fault.Fault
				require.ErrorAs(t, err, &f)
				require.Equal(t, fault.ServiceBusy, f.Code)
				require.True(t, w.calls[key] >= w.max || !slices.ContainsFunc(all, usable))
				continue
			}
			require.True(t, usable(r))
			for _, other := range all {
				if usable(other) {
					require.LessOrEqual(t, len(held[r.id])+r.participant.Load, len(held[other.id])+other.participant.Load)
				}
			}
			held[r.id] = append(held[r.id], r)
		}
		open := 0
		for id, list := range held {
			require.Equal(t, len(list), w.open[id])
			open += len(list)
		}
		require.Equal(t, open, w.calls[key])
		require.Len(t, w.open, len(held), "nothing is kept of what has ended")
	})
}

// The directory's figure of a replica's load is late: it may include ended calls of this process. The gateway's figure in
// its confirmation corrects that.
func TestLateLoadsFavourNoReplica(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, key, all := stage(t, 2)
		for _, r := range all {
			r.participant.Online, r.participant.Status = true, command.StatusActive
			r.others = rapid.IntRange(0, 9).Draw(t, "late")
			w.measured(r, 1, 1) // its one call is this process'
		}
		var open []*replica
		shares := map[string]int{}
		for range 100 {
			r, err := w.take(key, "t", nil)
			require.NoError(t, err)
			shares[r.id]++
			// Earlier calls of this process may end before it reads the confirmation of this one.
			before := w.opened(r)
			open = append(open, r)
			for len(open) > 8 || len(open) > 0 && rapid.Bool().Draw(t, "ends") {
				w.release(key, open[0])
				open = open[1:]
			}
			w.measured(r, before, before)
		}
		require.Len(t, shares, 2)
		for _, n := range shares {
			require.InDelta(t, 50, n, 10)
		}
	})
}

// Calls of other processes count as far as both sources report them: the directory learns of their end, gateways of their
// beginning.
func TestCallsOfOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, _, all := stage(t, 1)
		r := all[0]
		r.others = 5
		require.Equal(t, 5, w.elsewhere(r), "nothing of ours was there yet")
		w.measured(r, -1, 1)
		require.Equal(t, 5, w.elsewhere(r), "a gateway that says nothing")
		w.measured(r, 4, 1)
		require.Equal(t, 3, w.elsewhere(r))
		r.others = 0
		require.Zero(t, w.elsewhere(r), "they have ended")
		w.measured(r, 1, 2)
		require.Zero(t, w.elsewhere(r), "calls on their way are ours")
	})
}

// stage returns a swarm with one service, with replicas in all conditions.
func stage(t *rapid.T, n int) (*Registry, serviceKey, []*replica) {
	w := &Registry{max: 20, open: map[string]int{}, idle: map[string]time.Time{}, others: map[string]int{}, calls: map[serviceKey]int{}, shelves: map[id.Tenant]*shelf{}}
	var all []*replica
	for i := range n {
		p := command.Participant{
			Kind: command.ParticipantService, Tenant: id.DefaultTenant, ID: "s", Connection: string(rune('a' + i)), Gateway: "g",
			Status: rapid.SampledFrom([]string{command.StatusActive, command.StatusActive, command.StatusBusy}).Draw(t, "status"),
			Online: rapid.SampledFrom([]bool{true, true, false}).Draw(t, "online"),
			Load:   rapid.IntRange(0, 3).Draw(t, "load"), Tools: []command.ParticipantTool{{ID: "t"}},
		}
		data, err := json.Marshal(p)
		require.NoError(t, err)
		m, err := newMember("k", directory.Member{Data: data})
		require.NoError(t, err)
		r := newReplica(m, nil, schema.Compile)
		r.others = p.Load // as the swarm reads it: this process has no calls yet
		all = append(all, r)
	}
	w.shelves[id.DefaultTenant] = &shelf{view: newView(slices.Clone(all), []string{everyService})}
	return w, serviceKey{id.DefaultTenant, "s"}, all
}

// TestSchemasOfOneTenantDelayNoOther: the registry compiles them under a lock of the tenant's own, and refuses those whose
// checks would have no bound, with the reason.
func TestSchemasOfOneTenantDelayNoOther(t *testing.T) {
	other, err := id.ParseTenant("other")
	require.NoError(t, err)
	var defs strings.Builder
	for i := range 60 {
		fmt.Fprintf(&defs, `"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	bomb := json.RawMessage(`{"$ref":"#/$defs/a0","$defs":{` + defs.String() + `"a60":{}}}`)
	var logged bytes.Buffer
	w := New(Config{Logger: zerolog.New(&logged), Services: []string{everyService}})
	w.stale = false
	for _, tenant := range []id.Tenant{id.DefaultTenant, other} {
		p := command.Participant{Kind: command.ParticipantService, Tenant: tenant, ID: "s", Tools: []command.ParticipantTool{
			{ID: "good"}, {ID: "in", InputSchema: bomb}, {ID: "out", OutputSchema: bomb},
		}}
		data, err := json.Marshal(p)
		require.NoError(t, err)
		m, err := newMember(tenant.String(), directory.Member{Data: data})
		require.NoError(t, err)
		w.listed[tenant] = listing{version: 1, members: []*member{m}}
	}
	w.look(id.DefaultTenant)
	w.shelves[id.DefaultTenant].mu.Lock() // its schemas are being compiled
	defer w.shelves[id.DefaultTenant].mu.Unlock()
	list := w.Tools(other)
	require.Len(t, list, 1)
	require.Equal(t, "s_good", list[0].Name)
	for _, tool := range []string{"tool in: its input schema: ", "tool out: its output schema: "} {
		require.Contains(t, logged.String(), tool+"the schema applies more than 10000 schemas to one value")
	}
}

func TestServicePrefixes(t *testing.T) {
	reserved := []string{"workspace", "web_search"}
	for in, want := range map[string]string{"llm-service-001": "llm-service-001", "A": "A", "searcher": "searcher"} {
		require.Equal(t, want, servicePrefix(in, reserved))
	}
	for _, in := range []string{"", "workspace", "web", "a_b", "ä", "x-0123abcd", strings.Repeat("x", 31), "a b", "a.b"} {
		require.NotEqual(t, in, servicePrefix(in, reserved))
	}
	require.Equal(t, "workspaces", servicePrefix("workspaces", reserved))
}

func TestServicePrefixProperty(t *testing.T) {
	ids := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-c_-]{0,4}(-[0-9a-f]{8})?`))
	names := rapid.StringMatching(`[a-c]{1,2}(_[a-c]{1,2})?`)
	rapid.Check(t, func(t *rapid.T) {
		server, a, b := names.Draw(t, "server"), ids.Draw(t, "a"), ids.Draw(t, "b")
		p := servicePrefix(a, []string{server})
		require.Regexp(t, `^[A-Za-z0-9-]{1,30}$`, p)
		require.Equal(t, p, servicePrefix(a, []string{server}))
		if a != b {
			q := servicePrefix(b, []string{server})
			require.NotEqual(t, p, q)
			require.NotEqual(t, offer.Name(p, rapid.String().Draw(t, "x")), offer.Name(q, rapid.String().Draw(t, "y")))
		}
		require.False(t, offer.BelongsTo(offer.Name(p, rapid.String().Draw(t, "tool")), server), "no tool of a service is taken for a server's")
	})
}

// The answer of an MCP tool has to fit the tool's output schema.

// The registry keeps compiled schemas exactly as long as an entry uses them.
func TestSchemasAreCompiledOnce(t *testing.T) {
	w := &shelf{schemas: map[[32]byte]compiled{}}
	raw := json.RawMessage(`{"type":"object"}`)
	first, err := w.compile(raw, nil)
	require.NoError(t, err)
	_, err = w.compile(json.RawMessage(`{"$ref":"#"}`), nil)
	require.Error(t, err)
	before := w.schemas
	w.schemas = map[[32]byte]compiled{}
	w.keep(&replica{member: &member{participant: command.Participant{Tools: []command.ParticipantTool{{InputSchema: raw}}}}}, before)
	require.Len(t, w.schemas, 1)
	again, err := w.compile(raw, before)
	require.NoError(t, err)
	require.Same(t, first, again)
}

// A result tells a model only once what the server says twice.
