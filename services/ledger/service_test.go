package ledger_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

var (
	note = id.MustName("note")
	look = id.MustName("look")
)

// counted is what a decision of countingService has seen.
type counted struct{ Env, State int }

// countingService decides each note once, with the number of events that its environment and its state have. looked is told what is
// true when a command that appends nothing is over.
func countingService(r *rig, looked func(commandID string, n int)) {
	countingAt(r, nil, r.Deps("counter"), looked)
}

// countingAt is countingService with another clock and other dependencies.
func countingAt(r *rig, now func() time.Time, deps ledger.Deps, looked func(commandID string, n int)) {
	r.Run(ledger.NewService(ledger.ServiceConfig[notes, int]{
		Now: now, Service: cmd.Task, Kind: ref.Kind, Timer: id.MustName("due"), Fired: id.MustName("fired"), Fold: fold(nothing),
		Env: func(_ context.Context, l *ledger.Log[notes], _ cmd.Command) (int, error) {
			return len(l.State().ids), nil
		},
		Decide: func(st *notes, c cmd.Command, env int) (decision.Decision, error) {
			if c.Verb == look || st.has(c.ID) {
				return decision.Decision{}, nil
			}
			raw, err := json.Marshal(counted{env, len(st.ids)})
			return decision.Of(decision.Fact{ID: c.ID, Data: event.NoticeData{Message: string(raw)}}), err
		},
		FollowUp: func(_ context.Context, l *ledger.Log[notes], c cmd.Command) error {
			if c.Verb == look {
				looked(c.ID, len(l.State().ids))
			}
			return nil
		},
	}, deps))
}

// TestDecisionsKnowTheWholeLog: whichever events of other services, in this process and in others, a log gets between commands, each
// decision that counts is made with all of them. Its environment may lack those that came after the command.
func TestDecisionsKnowTheWholeLog(t *testing.T) {
	r := newRig(t)
	var mu sync.Mutex
	seen := map[string]chan int{}
	countingService(r, func(commandID string, n int) {
		mu.Lock()
		defer mu.Unlock()
		seen[commandID] <- n
	})
	here, elsewhere := r.config(nothing), r.config(nothing)
	here.Store = r.Log
	others := map[string]*ledger.Log[notes]{"here": ledger.Open(here, ref), "elsewhere": ledger.Open(elsewhere, ref)}
	random := rand.New(rand.NewPCG(14, 88))
	total, pending, before := 0, 0, map[string]int{}
	send := func(verb id.Name, commandID string) {
		r.Command(cmd.Command{ID: commandID, Service: cmd.Task, Verb: verb, Tenant: ref.Tenant, Key: ref.Entity}, nil)
	}
	for i := range 200 {
		switch name := fmt.Sprint("c", i); random.IntN(4) {
		case 0:
			over := make(chan int, 1)
			mu.Lock()
			seen[name] = over
			mu.Unlock()
			send(look, name)
			require.Equal(t, total, <-over, "%s looks", name)
		case 1:
			_, err := others["elsewhere"].Update(r.Ctx, want("elsewhere"+name))
			require.NoError(t, err)
			total++
		case 2:
			_, err := others["here"].Update(r.Ctx, want("here"+name))
			require.NoError(t, err)
			total++
		default: // it races with the next event
			before[name] = total - pending
			send(note, name)
			total++
			pending++
		}
		if random.IntN(2) == 0 {
			r.Until(ref, event.Notice, total)
			pending = 0
		}
	}
	for n, e := range r.Until(ref, event.Notice, total) {
		least, command := before[e.ID]
		if !command {
			continue
		}
		var d event.NoticeData
		require.NoError(t, e.Decode(&d))
		var c counted
		require.NoError(t, json.Unmarshal([]byte(d.Message), &c))
		require.Equal(t, n, c.State, e.ID)
		require.GreaterOrEqual(t, c.Env, least, e.ID)
	}
	require.Greater(t, len(before), 20)
}

// TestAServerWithAWrongClockLosesNoCommand: the server that stores the commands is 10 minutes ahead of the bus' clock, or behind it.
// Commands of people count all the same.
func TestAServerWithAWrongClockLosesNoCommand(t *testing.T) {
	for name, off := range map[string]time.Duration{"ahead": -10 * time.Minute, "behind": 10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			clock := func() time.Time { return time.Now().Add(off) }
			gateway, verifier := servicetest.Keys(t, clock)
			deps := r.Deps("counter")
			deps.Signatures = verifier
			countingAt(r, clock, deps, func(string, int) {})
			for i := range 3 {
				c := cmd.Command{ID: fmt.Sprint("c", i), Service: cmd.Task, Verb: cmd.CancelTask, Tenant: ref.Tenant, Key: ref.Entity, Principal: "alice"}
				require.NoError(t, gateway.Sign(&c))
				r.Command(c, nil)
			}
			require.Len(t, r.Until(ref, event.Notice, 3), 3)
		})
	}
}
