package dialecttest

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// maxFrames is how many frames an event may give: more would not fit into positions.
const maxFrames = 15

// Position returns the position of a frame of a dialect with positions, in any of its forms.
func Position(frame []byte) uint64 {
	var v struct {
		Sequence uint64 `json:"sequence"`
		Payload  struct {
			Stream struct {
				Sequence uint64 `json:"sequence"`
			} `json:"team_stream_event_envelope"`
		} `json:"payload"`
	}
	_ = json.Unmarshal(frame, &v) // A frame without a position has position 0.
	return max(v.Sequence, v.Payload.Stream.Sequence)
}

// each checks the positions of the frames of one event: they grow, and each is the place after its frame.
func (c *checker) each(t require.TestingT, e event.Event, said []reading) {
	if len(said) > maxFrames {
		require.LessOrEqual(t, len(said), maxFrames, "%s", e.Type)
	}
	last := uint64(0)
	for i, r := range said {
		if e.Sequence == 0 {
			require.Zero(t, r.place, "a direct message has no position")
			continue
		}
		wantSeq, wantSkip := e.Sequence-1, i+1
		if i == len(said)-1 {
			wantSeq, wantSkip = e.Sequence, 0
		}
		if seq, skip := c.Place(r.place); r.place <= last || seq != wantSeq || skip != wantSkip {
			require.Greater(t, r.place, last, "%+v", r)
			require.Equal(t, []any{wantSeq, wantSkip}, []any{seq, skip}, "%+v", r)
		}
		last = r.place
	}
}

// place returns the position that a frame has, and where its client resumes: after the event
// with the sequence seq, and skip frames of the next one.
func (c *checker) place(r reading) (position, seq uint64, skip int) {
	if c.Place != nil {
		seq, skip = c.Place(r.place)
		return r.place, seq, skip
	}
	return r.seq, r.seq, 0
}

// resumable checks that a client whose connection breaks after any frame, and that resumes
// there, gets exactly the frames that it misses.
func (c *checker) resumable(t require.TestingT, events []event.Event, perEvent [][][]byte) {
	var all [][]byte
	for i, frames := range perEvent {
		require.Equal(t, events[0].Sequence+uint64(i), events[i].Sequence, "events of a log are dense")
		all = append(all, frames...)
	}
	last := uint64(0)
	for n, f := range all {
		position, seq, skip := c.place(c.frame(t, f))
		if position <= last {
			require.Greater(t, position, last, "two frames of one event need positions of their own: %s", f)
		}
		last = position
		var rest [][]byte
		for i, e := range events {
			if e.Sequence > seq {
				rest = append(rest, perEvent[i]...)
			}
		}
		if skip > len(rest) || !slices.EqualFunc(all[n+1:], rest[skip:], bytes.Equal) {
			require.LessOrEqual(t, skip, len(rest))
			require.Equal(t, joined(all[n+1:]), joined(rest[skip:]), "after %d", last)
		}
	}
}

func joined(frames [][]byte) string { return string(bytes.Join(frames, []byte("\n"))) }

// cuts checks whole histories, also with events of members of teams in teams: positions
// grow, the frames before any cut and those after a resume are the whole, and a codec that
// has encoded other events before gives the same bytes. Every variant gets every history, and
// the variants take turns to encode it once more.
func (c *checker) cuts(t *testing.T) {
	types := c.types()
	if c.Place != nil {
		for _, p := range []uint64{0, 1, maxFrames - 1, maxFrames} {
			seq, skip := c.Place(p)
			require.Zero(t, seq+uint64(skip), "%d is before the first event", p)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		start := rapid.Uint64Range(1, 1<<40).Draw(r, "start")
		var events []event.Event
		for i := range rapid.IntRange(1, 8).Draw(r, "events") {
			info := types[rapid.IntRange(0, len(types)-1).Draw(r, "type")]
			e := event.Event{
				SpecVersion: event.SpecVersion, ID: "e", Source: "test", Type: info.Type,
				Subject: c.Log.Name(), Time: Now, Sequence: start + uint64(i),
			}
			e.Data = fill(t, info, rapid.String().Draw(r, "text"), `{"path":"p","content":"x"}`, rapid.IntRange(0, 5).Draw(r, "n"))
			events = append(events, Nest(t, e, rapid.IntRange(0, 4).Draw(r, "depth"), rapid.SampledFrom([]string{"", event.AgentIdle}).Draw(r, "status")))
		}
		for n := range c.bound {
			c.cut(r, n, events, uint64(n) == start%uint64(len(c.bound)))
		}
	})
}

// cut checks a history in the variant number n, which encodes it twice if asked to.
func (c *checker) cut(t require.TestingT, n int, events []event.Event, twice bool) {
	codec := c.bound[n]
	var perEvent [][][]byte
	for _, e := range events {
		perEvent = append(perEvent, codec.Encode(e))
	}
	c.resumable(t, events, perEvent)
	if !twice {
		return
	}
	other, err := c.Dialect.Bind(c.Variants[n])
	require.NoError(t, err)
	for i := len(events) - 1; i >= 0; i-- {
		if again := other.Encode(events[i]); !slices.EqualFunc(perEvent[i], again, bytes.Equal) {
			require.Equal(t, joined(perEvent[i]), joined(again), "the same event gives the same bytes")
		}
	}
}

// Nest returns the event as one of a member of a team, depth-1 teams deep in the team of
// e's log. status is what the member is from then on, if it has changed.
func Nest(t testing.TB, e event.Event, depth int, status string) event.Event {
	t.Helper()
	if depth == 0 {
		return e
	}
	outer := e
	e.Subject, e.Sequence = "default.member.agent-1", 3
	e = relayed(t, e, event.TeamMemberEventData{
		MemberName: "Coder", MemberID: "agent-1", Seq: 3, Status: status, OldStatus: old(status), Event: stored(t, e),
	})
	for range depth - 1 {
		e = relayed(t, e, event.TeamSubTeamEventData{SubTeamNodeName: "node", SubTeamID: "sub-1", Seq: 5, SubTeamEvent: stored(t, e)})
	}
	e.Subject, e.Sequence, e.Stream, e.From = outer.Subject, outer.Sequence, outer.Stream, outer.From
	return e
}

func old(status string) string {
	if status == "" {
		return ""
	}
	return event.AgentProcessingInput
}

// relayed returns the event that holds the event e of a log.
func relayed(t testing.TB, e event.Event, data event.Data) event.Event {
	t.Helper()
	raw, err := json.Marshal(data)
	require.NoError(t, err)
	return event.Event{
		SpecVersion: event.SpecVersion, ID: e.ID + ".up", Source: "team", Type: data.EventType(), Subject: "default.team.sub-1",
		Time: Now, Sequence: 5, Data: raw,
	}
}

func stored(t testing.TB, e event.Event) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(e)
	require.NoError(t, err)
	return raw
}

// Filled returns JSON data of a canonical type: text in every string, raw in what is JSON
// from elsewhere, and n decides the rest.
func Filled(t testing.TB, info event.Info, text, raw string, n int) json.RawMessage {
	t.Helper()
	return fill(t, info, text, raw, n)
}

// ExerciseWatchingTeams is ExerciseWatching for dialects of teams, in which the frames of
// a member's event are not the same in its own log and in its team's.
func ExerciseWatchingTeams(t *testing.T, w Watch) {
	t.Helper()
	c := watching(t, w)
	t.Run("told", c.told)
	t.Run("told of every type", c.toldOfEveryType)
}
