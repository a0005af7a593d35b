package roster_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/internal/directory"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/assignment"
	"github.com/waggle-dev/waggle/services/task/roster"
)

var (
	tenant  = id.DefaultTenant
	began   = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	words   = []string{"weld", "solder", "paint"}
	idle    = func(id.Tenant, string) (int, time.Time) { return 0, time.Time{} }
	gateway = id.MustName("gw")
)

// world is a roster beside what it should hold.
type world struct {
	*roster.Roster
	stored map[string]cmd.Participant
	live   map[string]cmd.Participant
	loads  map[string]int
	idle   map[string]time.Time
}

func newWorld() *world {
	w := &world{stored: map[string]cmd.Participant{}, live: map[string]cmd.Participant{}, loads: map[string]int{}, idle: map[string]time.Time{}}
	w.Roster = roster.New(func(_ id.Tenant, agent string) (int, time.Time) { return w.loads[agent], w.idle[agent] })
	return w
}

func (w *world) join(t require.TestingT, p cmd.Participant, gone bool) {
	raw, err := json.Marshal(p)
	require.NoError(t, err)
	w.Member(directory.Change{Gone: gone, Member: directory.Member{What: cmd.WhatAgent, Name: id.MustName("m-" + p.ID), Instance: gateway, Data: raw, Joined: 1}})
	if delete(w.live, p.ID); !gone {
		w.live[p.ID] = p
	}
}

// shown are the participants that lists have, in their order.
func (w *world) shown() (out []cmd.Participant) {
	all := map[string]cmd.Participant{}
	for k, p := range w.stored {
		all[k] = p
	}
	for k, p := range w.live {
		all[k] = p
	}
	for _, p := range all {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b cmd.Participant) int {
		if a.Name != b.Name {
			return map[bool]int{true: -1, false: 1}[a.Name < b.Name]
		}
		return map[bool]int{true: -1, false: 1}[a.ID < b.ID]
	})
	return out
}

func (w *world) candidates() (out assignment.List) {
	for _, p := range w.shown() {
		_, there := w.live[p.ID]
		since := p.Since
		if w.idle[p.ID].After(since) {
			since = w.idle[p.ID]
		}
		out = append(out, assignment.Candidate{
			ID: p.ID, Name: p.Name, Capabilities: p.Capabilities, Online: p.Online, Away: there && !p.Online, Status: p.Status, Full: p.Full,
			Since: since, Joined: p.Since, Load: max(p.Load, w.loads[p.ID]),
		})
	}
	return out
}

// pages returns the pages of a list, joined.
func pages(r *roster.Roster, f cmd.ParticipantFilter, n int) (out []cmd.Participant) {
	for at, more := (roster.Spot{}), true; more; {
		var some []cmd.Participant
		some, at, more = r.Some(tenant, cmd.ParticipantAgent, f, at, n)
		out = append(out, some...)
	}
	return out
}

func ids(all []cmd.Participant) (out []string) {
	for _, p := range all {
		out = append(out, p.ID)
	}
	return out
}

func draw(t *rapid.T) cmd.Participant {
	n := rapid.IntRange(0, 9).Draw(t, "id")
	p := cmd.Participant{
		Kind: cmd.ParticipantAgent, ID: fmt.Sprint("a", n), Tenant: tenant, Name: rapid.SampledFrom([]string{"A", "Ab", "B"}).Draw(t, "name"), Since: began.Add(time.Duration(n) * time.Second),
		Status: cmd.StatusInactive, Capabilities: rapid.SliceOfN(rapid.SampledFrom(words), 0, 3).Draw(t, "capabilities"),
	}
	if n == 9 {
		p.Tenant = id.Tenant{} // of all tenants
	}
	return p
}

// TestAnyHistoryHasTheRightListsAndChoices: after any changes each list, with any filter and in pages of any size, and each choice
// are those of a plain list of all agents.
func TestAnyHistoryHasTheRightListsAndChoices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.Bulk(rapid.Bool().Draw(t, "loading"))
		t.Repeat(map[string]func(*rapid.T){
			"store": func(t *rapid.T) {
				p := draw(t)
				if p.Tenant.IsZero() {
					t.Skip("the bucket has none of these")
				}
				w.stored[p.ID] = p
				w.Store(p)
			},
			"unstore": func(t *rapid.T) {
				gone := draw(t).ID
				delete(w.stored, gone)
				w.Unstore(func(p cmd.Participant) bool { return p.ID == gone })
			},
			"join": func(t *rapid.T) {
				p := draw(t)
				p.Online, p.Full, p.Load = rapid.Bool().Draw(t, "online"), rapid.Bool().Draw(t, "full"), rapid.IntRange(0, 2).Draw(t, "load")
				p.Status = rapid.SampledFrom([]string{cmd.StatusActive, cmd.StatusBusy, cmd.StatusMaintenance}).Draw(t, "status")
				w.join(t, p, false)
			},
			"leave":  func(t *rapid.T) { w.join(t, draw(t), true) },
			"settle": func(*rapid.T) { w.Bulk(false) },
			"work": func(t *rapid.T) {
				agent := draw(t)
				w.loads[agent.ID], w.idle[agent.ID] = rapid.IntRange(0, 3).Draw(t, "tasks"), began.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "idle"))*time.Second)
				w.Busy(tenant, agent.ID)
			},
			"": func(t *rapid.T) { w.check(t) },
		})
	})
}

func (w *world) check(t *rapid.T) {
	f := cmd.ParticipantFilter{
		Prefix:       rapid.SampledFrom([]string{"", "A", "Ab", "C"}).Draw(t, "prefix"),
		Capabilities: rapid.SliceOfN(rapid.SampledFrom(words), 0, 2).Draw(t, "wanted"), Status: rapid.SampledFrom([]string{"", cmd.StatusActive}).Draw(t, "state"),
	}
	var want []string
	for _, p := range w.shown() {
		if !p.Online {
			p.Status = cmd.StatusInactive
		}
		if roster.Matches(p, f) {
			want = append(want, p.ID)
		}
	}
	require.Equal(t, want, ids(pages(w.Roster, f, rapid.IntRange(1, 4).Draw(t, "page"))))

	task := event.TaskCreatedData{
		WantedID: rapid.SampledFrom([]string{"", "a1", "a9"}).Draw(t, "agent"), WantedName: rapid.SampledFrom([]string{"", "A", "B"}).Draw(t, "agent's name"),
		Capabilities: rapid.SliceOfN(rapid.SampledFrom(words), 0, 2).Draw(t, "needs"),
	}
	plain, view := w.candidates(), w.Agents(tenant)
	best, ok := assignment.Choose(task, plain)
	got, gotOne := assignment.Choose(task, view)
	require.Equal(t, []any{ok, best.ID, best.Load, best.Since}, []any{gotOne, got.ID, got.Load, got.Since})
	require.Equal(t, assignment.Known(task, plain), assignment.Known(task, view))
	require.Len(t, view.Some(task, 2), len(plain.Some(task, 2)))
	a, ok := plain.Agent("a1")
	b, there := view.Agent("a1")
	require.Equal(t, []any{ok, a.ID, a.Online, a.Away}, []any{there, b.ID, b.Online, b.Away})
}

// TestPagesUnderConcurrentRegistration: pages that are read while agents come and go have each agent that was there
// throughout once, and in order.
func TestPagesUnderConcurrentRegistration(t *testing.T) {
	t.Parallel()
	const stay, others = 1500, 1500
	r := roster.New(idle)
	agent := func(kind string, n int) cmd.Participant {
		return cmd.Participant{Kind: cmd.ParticipantAgent, Tenant: tenant, ID: fmt.Sprint(kind, n), Name: fmt.Sprint("Agent ", n%97), Capabilities: []string{"weld"}}
	}
	r.Bulk(true)
	want := map[string]bool{}
	for n := range stay {
		r.Store(agent("s", n))
		want[fmt.Sprint("s", n)] = true
	}
	r.Bulk(false)
	var writers sync.WaitGroup
	quit := make(chan struct{})
	for w := range 2 {
		writers.Go(func() {
			for n := w; ; n = (n + 2) % others {
				select {
				case <-quit:
					return
				default:
				}
				one := agent("x", n)
				r.Store(one)
				if n%3 == 0 {
					raw, err := json.Marshal(one)
					if err != nil {
						t.Error(err)
						return
					}
					m := directory.Member{What: cmd.WhatAgent, Name: id.MustName("m-" + one.ID), Instance: gateway, Data: raw}
					r.Member(directory.Change{Member: m})
					r.Member(directory.Change{Member: m, Gone: true})
				}
			}
		})
	}
	for round := range 8 {
		f := cmd.ParticipantFilter{}
		if round%2 == 1 {
			f.Capabilities = []string{"weld"}
		}
		seen := map[string]bool{}
		all := pages(r, f, 100+round)
		for i, p := range all {
			require.False(t, seen[p.ID], "%s is doubled", p.ID)
			seen[p.ID] = true
			if i > 0 {
				behind, err := p.Follows(all[i-1].Place())
				require.NoError(t, err)
				require.True(t, behind, "%s comes too early", p.ID)
			}
		}
		for agentID := range want {
			require.True(t, seen[agentID], "%s is missing", agentID)
		}
	}
	close(quit)
	writers.Wait()
}

// TestTheAgentsOfAReconnectCountOnce: of two entries the online one counts, and the registry tells of a change once.
func TestTheAgentsOfAReconnectCountOnce(t *testing.T) {
	t.Parallel()
	r := roster.New(idle)
	entry := func(connection string, joined uint64, online bool) directory.Change {
		p := cmd.Participant{Kind: cmd.ParticipantAgent, Tenant: tenant, ID: "a", Name: "A", Connection: connection, Online: online, Status: cmd.StatusActive}
		raw, err := json.Marshal(p)
		require.NoError(t, err)
		return directory.Change{Member: directory.Member{What: cmd.WhatAgent, Name: id.MustName("a"), Instance: id.MustName("gw-" + connection), Data: raw, Joined: joined}}
	}
	key := roster.Key{Tenant: tenant, Kind: cmd.ParticipantAgent, ID: "a"}
	via := func() string {
		p, ok := r.Online(key)
		require.True(t, ok)
		return p.Connection
	}
	old, young := entry("old", 1, true), entry("young", 2, true)
	r.Member(old)
	r.Member(young)
	require.Equal(t, "young", via())
	r.Member(entry("young", 2, false))
	require.Equal(t, "old", via())
	require.Len(t, pages(r, cmd.ParticipantFilter{}, 10), 1)
	require.Len(t, r.Changes(), 1)
	require.Empty(t, r.Changes())
	old.Gone = true
	r.Member(old)
	require.Equal(t, "young", via())
	young.Gone = true
	r.Member(young)
	_, ok := r.Online(key)
	require.False(t, ok)
	require.Equal(t, map[roster.Key]*cmd.Participant{key: nil}, r.Changes())
	require.Empty(t, pages(r, cmd.ParticipantFilter{}, 10))
	r.Member(directory.Change{Member: directory.Member{What: cmd.WhatAgent, Name: id.MustName("b"), Instance: gateway, Data: json.RawMessage(`{`)}})
	require.Empty(t, r.Changes(), "an unreadable member does not count")
}
