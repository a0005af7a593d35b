package team_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/eventlog"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/team"
)

// hostile makes texts that an encoder may write in several ways.
func hostile(seed uint64) func() string {
	rnd := rand.New(rand.NewPCG(seed, 1))
	pieces := []string{
		"<", ">", "&", "\u2028", "\u2029", "\u0000", "\u001f", "\u007f", "\"", "\\", "/", "\n", "\t", "\b", "é", "\U0001F600", "\ufffd", "\ufeff",
		`\u003c`, `\/`, "{", "}", " ", "  ", "null", "a", "\xff", "\xed\xa0\x80", "1e400", "-0",
	}
	return func() string {
		var b strings.Builder
		for range rnd.IntN(40) {
			b.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		return b.String()
	}
}

func TestNestedEventsAreRelayedByteForByte(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("one", team.Config{})
	text := hostile(7)
	var texts sync.Mutex
	some := func() string {
		texts.Lock()
		defer texts.Unlock()
		return text()
	}
	r.cast.plays(func(a *actor, run string, _ cmd.UserMessage) error {
		for i, args := range []string{
			`{ "a" : 1.0e+05, "b":"\u003c\u2028\/\ud83d\ude00", "c":[ 1, 2 ,-0.0,1E400],"a":null, "\u0061b" : "\u0000" }`, `[]`, `"\u007f<>&"`, `123456789012345678901234567890`,
		} {
			err := a.put(context.Background(), "", event.InputRequestedData{
				InputID: fmt.Sprint(run, i), RunID: run, Scope: event.ScopePlan, Tool: some(), Arguments: json.RawMessage(args),
			})
			if err != nil {
				return err
			}
		}
		return a.says(context.Background(), run, some(), some(), some(), some(), some(), some())
	})
	l := r.found(deep())
	members := []string{"", "Writer", "backend", "backend/Tester", "backend/deep", "backend/deep/Digger", "deep", "Digger"}
	for i, to := range members {
		r.message(l, fmt.Sprint("m", i), to, some())
	}
	entries := r.settled(l, len(members))
	require.Greater(t, r.exact(l), 2*12*len(members), "nested logs are compared at every level")
	routes := map[string]bool{}
	for _, e := range entries {
		routes[event.Unwrap(e.Event).Via.Route] = true
	}
	for _, route := range []string{"Lead", "Writer", "backend", "backend/Coder", "backend/Tester", "backend/deep", "backend/deep/Chief", "backend/deep/Digger"} {
		require.True(t, routes[route], route)
	}
}

// TestTheLargestEventIsRelayed has an agent three teams deep append what just fits.
func TestTheLargestEventIsRelayed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.cast.plays(leave)
	r.start("one", team.Config{})
	l := r.found(deep())
	r.message(l, "m1", "backend/deep/Digger", "dig")
	r.untilInner(l, event.RunStarted, 1)
	a := r.cast.actor(agentOf(t, l, "backend", "deep", "Digger"))
	say := func(n int) error {
		return a.put(r.Ctx, fmt.Sprint("large", n), event.MessageDeltaData{MessageID: "m", RunID: "run_m1", Attempt: 1, Text: strings.Repeat("x", n)})
	}
	const most = 256 << 10
	require.ErrorIs(t, say(most), eventlog.ErrRefused)
	require.NoError(t, say(most-500))
	require.NoError(t, a.says(r.Ctx, "run_m1", "done"))
	r.settled(l, 1)
	r.exact(l)
}

// stream has an agent write an event for each word that it is given, fifty a second at
// most, until there are no more.
func stream(ctx context.Context, a *actor, run string, words <-chan struct{}) error {
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	for i := 0; ; i++ {
		select {
		case _, more := <-words:
			if !more {
				return a.says(ctx, run, "the end")
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		<-pace.C
		if err := a.put(ctx, "", event.MessageDeltaData{MessageID: run + ".m", RunID: run, Attempt: 1, Text: fmt.Sprint(a.name, " <", i, ">")}); err != nil {
			return err
		}
	}
}

// TestTheRelayIsExactOverTakeovers stops the relaying replica ten times while agents stream: each time at
// another point of what it relays.
// Their texts have a bound, so that a slow machine does not have more to relay.
func TestTheRelayIsExactOverTakeovers(t *testing.T) {
	t.Parallel()
	const agents, takeovers, words = 6, 10, 100
	r := newRig(t)
	r.cast.plays(leave)
	replicas := map[string]*team.Service{"r0": r.start("r0", team.Config{}), "r1": r.start("r1", team.Config{})}
	members := []event.MemberDefinition{agent("Lead")}
	for i := 1; i < agents-1; i++ {
		members = append(members, agent(fmt.Sprint("A", i)))
	}
	members = append(members, node("sub", teamOf("inner", agent("Deep"))))
	l := r.found(teamOf("busy", members...))
	for _, m := range members {
		r.message(l, "to-"+m.Name, m.Name, "go")
	}
	r.untilInner(l, event.RunStarted, agents)

	speech, done := make(chan struct{}, (takeovers+1)*words), make(chan error, agents)
	for _, log := range r.agents(l, members) {
		a := r.cast.actor(log)
		run := a.run()
		go func() { done <- stream(r.Ctx, a, run, speech) }()
	}
	speak := func() {
		at, err := r.Log.Last(r.Ctx, l) // before a word is given: all may be said at once
		require.NoError(t, err)
		for range words {
			speech <- struct{}{}
		}
		r.growsFrom(l, at, 20)
	}
	stopped := map[string]int{}
	for i := range takeovers {
		speak()
		owner := r.owner(l)
		replicas[owner].Stop()
		stopped[owner]++
		delete(replicas, owner)
		name := fmt.Sprint("r", i+2)
		replicas[name] = r.start(name, team.Config{})
	}
	speak()
	close(speech)
	for range agents {
		require.NoError(t, <-done)
	}
	r.settled(l, agents)
	events := r.exact(l)
	require.Greater(t, events, 20*takeovers)
	t.Logf("%d takeovers of %d replicas, %d events of members, all exact", takeovers, len(stopped), events)
}

// agents returns the logs of the agents of the team, and of the coordinators of nested ones.
func (r *rig) agents(l subject.Log, members []event.MemberDefinition) []subject.Log {
	var out []subject.Log
	for _, m := range members {
		if m.Team != nil {
			out = append(out, agentOf(r.T, l, m.Name, m.Team.Coordinator))
		} else {
			out = append(out, agentOf(r.T, l, m.Name))
		}
	}
	return out
}

// growsFrom waits until a log has n events more than at the position.
func (r *rig) growsFrom(l subject.Log, at eventlog.Cursor, n uint64) {
	r.T.Helper()
	ctx, cancel := context.WithTimeout(r.Ctx, maxWait)
	defer cancel()
	for e, err := range r.Log.Tail(ctx, l, at) {
		require.NoError(r.T, err, "%s does not grow", l)
		if e.Sequence >= at.Seq+n {
			return
		}
	}
}

// TestATeamThatRestsIsRelayedAgainWhenItIsNeeded has the replica forget the team between
// messages.
func TestATeamThatRestsIsRelayedAgainWhenItIsNeeded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cfg := team.Config{Rest: 50 * time.Millisecond}
	r.start("one", cfg)
	r.start("two", cfg)
	l := r.found(deep())
	for i := range 6 {
		r.message(l, fmt.Sprint("m", i), []string{"", "Writer", "backend", "backend/deep/Digger"}[i%4], "again")
		r.settled(l, i+1)
		r.rests(l)
	}
	require.Positive(t, r.exact(l))
	inner := nestedOf(t, l, "backend", "deep")
	r.message(inner, "direct", "Chief", "a message that its parents do not know of")
	r.settled(l, 7)
	r.exact(l)
}

// rests waits until the team is not listed as active.
func (r *rig) rests(l subject.Log) {
	r.T.Helper()
	kv, err := r.Conn.JS().KeyValue(r.Ctx, subject.BucketRegistry)
	require.NoError(r.T, err)
	w, err := kv.Watch(r.Ctx, l.Tenant.String()+".team-active."+l.Entity.String())
	require.NoError(r.T, err)
	defer func() { require.NoError(r.T, w.Stop()) }()
	there := false
	for {
		select {
		case e := <-w.Updates():
			switch {
			case e != nil:
				there = len(e.Value()) > 0
			}
			if !there {
				return
			}
		case <-r.Ctx.Done():
			require.Fail(r.T, "the team stays active")
			return
		}
	}
}

// TestAKilledReplicaIsReplacedAtOnce: the directory lists it until its lease expires, but its
// subject has no subscriber.
func TestAKilledReplicaIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("one", team.Config{})
	l := r.found(teamOf("small", agent("Lead")))
	for i := 0; r.owner(l) == "one"; i++ {
		lease, err := r.Dir.Join(r.Ctx, directory.Member{What: directory.WhatService, Name: cmd.Team, Instance: id.MustName(fmt.Sprint("killed-", i))})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, lease.Leave(context.Background())) })
	}
	r.message(l, "m1", "", "go")
	r.settled(l, 1)
	r.exact(l)
}
