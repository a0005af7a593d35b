package team_test

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
)

// exact checks that a team's log holds every event of every member's log once, in the
// member's order and byte for byte, for all teams that are nested in it, and that its
// status was true at every point. It returns how many events it compared.
func (r *rig) exact(l subject.Log) (events int) {
	r.T.Helper()
	entries := r.Stored(l)
	r.truth(entries)
	got := map[subject.Log][][]byte{}
	for i, e := range entries {
		require.EqualValues(r.T, i+1, e.Sequence)
		log, seq, raw := inside(r, e)
		if raw == nil {
			continue
		}
		require.EqualValues(r.T, len(got[log])+1, seq, "%s in %s at %d: events are doubled, lost or out of order", log, l, e.Sequence)
		got[log] = append(got[log], raw)
	}
	for log, raws := range got {
		member := r.Stored(log)
		if len(raws) < len(member) { // the last events of all are on their way
			r.growsFrom(l, entries[len(entries)-1].Cursor(), 1)
			return r.exact(l)
		}
		if len(raws) != len(member) {
			require.Fail(r.T, "too much", "%d events of the %d of %s in %s", len(raws), len(member), log, l)
		}
		for i, e := range member {
			require.Equal(r.T, string(e.Raw), string(raws[i]), "seq %d of %s", i+1, log)
		}
		events += len(member)
		if log.Kind == id.KindTeam {
			events += r.exact(log)
		}
	}
	return events
}

// inside returns what an event of a team's log holds of a member's; nil if it is its own.
func inside(r *rig, e *eventlog.Entry) (log subject.Log, seq uint64, raw []byte) {
	r.T.Helper()
	switch e.Type {
	case event.TeamMemberEvent:
		d, err := event.As[event.TeamMemberEventData](e.Event)
		require.NoError(r.T, err)
		return agentLog(id.EntityFromExternal(d.MemberID)), d.Seq, d.Event
	case event.TeamSubTeamEvent:
		d, err := event.As[event.TeamSubTeamEventData](e.Event)
		require.NoError(r.T, err)
		return teamLog(id.EntityFromExternal(d.SubTeamID)), d.Seq, d.SubTeamEvent
	}
	return log, 0, nil
}

// settled waits until n runs have ended in or below a team and the team reports that it is idle.
func (r *rig) settled(l subject.Log, n int) []*eventlog.Entry {
	r.T.Helper()
	w, seen, shown := newWorld(), 0, event.TeamStarting
	return r.Wait(l, fmt.Sprintf("%d runs to end and nothing to be on", n), func(all []*eventlog.Entry) bool {
		for ; seen < len(all); seen++ {
			e := all[seen].Event
			switch event.Unwrap(e).Type {
			case event.RunCompleted, event.RunCancelled, event.RunFailed:
				n--
			}
			if d, err := event.As[event.TeamStatusData](e); err == nil && e.Type == event.TeamStatus {
				shown = d.NewStatus
			}
			require.NoError(r.T, w.apply(e))
		}
		return n <= 0 && shown == w.status() && shown != event.TeamRunning && shown != event.TeamStarting
	})
}

// world is what the members of a team are doing, by their own events.
type world struct {
	coordinator string
	there       bool
	runs        map[string]map[string]bool // open, by agent
	failed      map[string]bool
	nested      map[string]string // status of nested teams
	mail        map[string]bool   // messages that have not arrived
	paused      bool
	closing     bool
}

func newWorld() *world {
	return &world{runs: map[string]map[string]bool{}, failed: map[string]bool{}, nested: map[string]string{}, mail: map[string]bool{}}
}

// truth checks the statuses of a team: whenever it is not what the members' events say,
// the next event corrects it.
func (r *rig) truth(entries []*eventlog.Entry) {
	r.T.Helper()
	w := newWorld()
	shown := event.TeamStarting
	for i, e := range entries {
		if e.Type == event.TeamStatus {
			d, err := event.As[event.TeamStatusData](e.Event)
			require.NoError(r.T, err)
			if d.OldStatus != shown || d.NewStatus != w.status() {
				require.Fail(r.T, "a status is wrong", "it showed %s and is %s at %d: %s", shown, w.status(), e.Sequence, servicetest.Told(entries[:i+1]))
			}
			shown = d.NewStatus
			continue
		}
		require.NoError(r.T, w.apply(e.Event))
		if w.status() != shown && i+1 < len(entries) && !announces(e, entries[i+1]) {
			if entries[i+1].Type != event.TeamStatus {
				require.Fail(r.T, "a status is missing", "after %d it is %s and shows %s: %s", e.Sequence, w.status(), shown, servicetest.Told(entries[:i+2]))
			}
		}
	}
}

// announces reports whether the two events together tell a member of a task.
func announces(e, next *eventlog.Entry) bool {
	d, err := event.As[event.TeamMessageData](e.Event)
	return err == nil && e.Type == event.TeamMessage && d.TaskID != "" && next.Type == event.BoardUpdated
}

func (w *world) apply(e event.Event) error {
	in := event.Unwrap(e)
	switch {
	case e.Type == event.TeamCreated:
		d, err := event.As[event.TeamCreatedData](e)
		w.coordinator = d.Definition.Coordinator
		return err
	case e.Type == event.TeamMessage:
		d, err := event.As[event.TeamMessageData](e)
		w.mail[d.MessageID] = true
		return err
	case e.Type == event.TeamMessageDropped:
		d, err := event.As[event.TeamMessageDroppedData](e)
		delete(w.mail, d.MessageID)
		return err
	case e.Type == event.TeamPauseBegun:
		w.paused = true
	case e.Type == event.TeamResumed:
		w.paused = false
	case e.Type == event.TeamClosing:
		w.closing = true
	case e.Type == event.TeamMemberEvent:
		return w.agent(in)
	case e.Type == event.TeamSubTeamEvent && in.Via.AgentID == "" && in.Via.Name() == in.Via.Route:
		return w.team(in)
	}
	return nil
}

func (w *world) agent(in event.Event) error {
	name := in.Via.Route
	var d struct {
		RunID     string `json:"run_id"`
		MessageID string `json:"message_id"`
	}
	if err := in.Decode(&d); err != nil {
		return fmt.Errorf("of %s: %w", name, err)
	}
	switch in.Type {
	case event.MemberCreated:
		w.there = w.there || name == w.coordinator
		w.runs[name] = map[string]bool{}
	case event.MessageReceived:
		w.runs[name][d.RunID] = true
		delete(w.mail, d.MessageID)
	case event.RunStarted:
		w.failed[name] = false
	case event.RunCompleted, event.RunCancelled:
		delete(w.runs[name], d.RunID)
	case event.RunFailed:
		delete(w.runs[name], d.RunID)
		w.failed[name] = true
	case event.MemberClosed:
		clear(w.runs[name])
	}
	return nil
}

func (w *world) team(in event.Event) error {
	switch in.Type {
	case event.TeamStatus:
		d, err := event.As[event.TeamStatusData](in)
		w.nested[in.Via.Route] = d.NewStatus
		return err
	case event.TeamMessage:
		d, err := event.As[event.TeamMessageData](in)
		delete(w.mail, d.MessageID)
		if s := w.nested[in.Via.Route]; s == event.TeamIdle || s == event.TeamFailed {
			w.nested[in.Via.Route] = event.TeamRunning
		}
		return err
	case event.TeamCreated:
		w.nested[in.Via.Route] = event.TeamStarting
	}
	return nil
}

func (w *world) status() string {
	working, failed := len(w.mail) > 0 && !w.paused, false
	for name, runs := range w.runs {
		working = working || len(runs) > 0
		failed = failed || w.failed[name]
	}
	for _, s := range w.nested {
		working = working || s == event.TeamRunning || s == event.TeamStarting
	}
	switch {
	case w.closing:
		return event.TeamShuttingDown
	case !w.there:
		return event.TeamStarting
	case working:
		return event.TeamRunning
	case w.paused:
		return event.TeamPaused
	case failed:
		return event.TeamFailed
	}
	return event.TeamIdle
}
