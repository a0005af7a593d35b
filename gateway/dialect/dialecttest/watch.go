package dialecttest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Watch says how a dialect shows logs of any kind.
type Watch struct {
	Encode   []func(event.Event) [][]byte // one for every variant
	Kind     string                       // the member of a frame that names its type; empty = type
	Name     func(frame any) string       // the name of a parsed frame's schema, where no member is its type
	Outbound []string                     // message types to the client
	Schema   string                       // the bundle, with a definition for every message type
	Groups   []string                     // of the bundle; nil = in and out
	Page     string                       // the page of the protocol, with the table
	One      bool                         // every event gives exactly one frame
	Member   func(frame map[string]any) string
	Strip    func(frame map[string]any) // takes away what differs where an event is a member's: its position and the member
}

// ExerciseWatching checks that no question, failure or answer is dropped, whatever the log, and
// that the events of members of a team look as they do in the members' own logs.
func ExerciseWatching(t *testing.T, w Watch) {
	t.Helper()
	c := watching(t, w)
	t.Run("told", c.told)
	t.Run("told of every type", c.toldOfEveryType)
	t.Run("unwrapped", c.unwrapped)
	t.Run("unreadable", c.unreadable)
}

func watching(t *testing.T, w Watch) *watcher {
	t.Helper()
	if w.Groups == nil {
		w.Groups = both
	}
	w.Kind = cmp.Or(w.Kind, "type")
	all, err := compile(w.Schema, w.Groups...)
	require.NoError(t, err)
	return &watcher{Watch: w, checker: checker{Suite: Suite{Kind: w.Kind, Name: w.Name, Outbound: w.Outbound}, schemas: all, readings: newReadings()}}
}

type watcher struct {
	Watch
	checker checker
}

// kinds are those of logs that can be watched.
var kinds = []id.Kind{id.KindSession, id.KindTask, id.KindMember, id.KindTeam}

// words are the values that decide how an event looks.
var words = []string{
	"", "plain", "ERROR", "failed", "completed", "cancelled", "tool", "plan", "budget", "steps", "service", "success", "unknown", "error",
	"warning", "delivered", "solving", "planning", "agent", "reject", "modify", "system", "QUEUE_FULL",
}

// holdsOthers are the types that stand for an event of another log.
var holdsOthers = []event.Type{event.TeamMemberEvent, event.TeamSubTeamEvent}

// changes are made to data besides the words: other codes, and tries that are left.
var changes = []*strings.Replacer{
	strings.NewReplacer(`"TOOL_FAILED"`, `"TASK_TIMEOUT"`), strings.NewReplacer(`"TOOL_FAILED"`, `"MODEL_TIMEOUT"`),
	strings.NewReplacer(`"max_tries":1`, `"max_tries":9`),
}

// made are the results of variants, which several tests of a package need.
var made sync.Map

// variants returns data of the type with everything that codecs look at.
func variants(t testing.TB, info event.Info) []json.RawMessage {
	known, _ := made.Load(info.Type)
	if out, ok := known.([]json.RawMessage); ok {
		return out
	}
	all := map[string]bool{}
	for _, word := range words {
		for n := range 2 {
			data := string(fill(t, info, word, `{"text":"`+word+`"}`, n))
			all[data] = true
			for _, change := range changes {
				all[change.Replace(data)] = true
			}
		}
	}
	var out []json.RawMessage
	for _, data := range slices.Sorted(maps.Keys(all)) {
		out = append(out, json.RawMessage(data))
	}
	made.Store(info.Type, out)
	return out
}

func logged(kind id.Kind, entity string, e event.Event) event.Event {
	e.SpecVersion, e.Source, e.Time = event.SpecVersion, "test", Now
	e.Subject = "default." + string(kind) + "." + entity
	return e
}

// mark is a text that has to arrive.
const mark = "Mark 7f3"

// mustTell are the events that no dialect drops: questions, failures, answers.
var mustTell = []struct {
	kind event.Type
	data string // the members that differ from data full of the mark
}{
	{event.InputRequested, `{"scope":"plan"}`},
	{event.InputRequested, `{"scope":"tool"}`},
	{event.InputRequested, `{"scope":"budget"}`},
	{event.InputRequested, `{"scope":"agent"}`},
	{event.TaskAsked, `{}`},
	{event.RunFailed, `{}`},
	{event.RunFailed, `{"answer":""}`},
	{event.StepFailed, `{}`},
	{event.TaskFinished, `{"status":"failed"}`},
	{event.JobFailed, `{"retryable":false}`},
	{event.ToolUnknown, `{}`},
	{event.Error, `{}`},
	{event.TeamStatus, `{"new_status":"ERROR"}`},
	{event.TeamMessageDropped, `{}`},
	{event.RunCompleted, `{}`},
	{event.AggregateCompleted, `{}`},
	{event.TaskFinished, `{"status":"completed"}`},
}

// told checks that what must not be dropped is said, in logs of every kind and at any
// depth of a team, and by whom.
func (c *watcher) told(t *testing.T) {
	for _, m := range mustTell {
		i := slices.IndexFunc(event.Catalogue, func(info event.Info) bool { return info.Type == m.kind })
		var data map[string]any
		require.NoError(t, json.Unmarshal(fill(t, event.Catalogue[i], mark, `{"text":"`+mark+`"}`, 1), &data))
		require.NoError(t, json.Unmarshal([]byte(m.data), &data))
		raw, err := json.Marshal(data)
		require.NoError(t, err)
		for _, kind := range kinds {
			e := logged(kind, "x1", event.Event{ID: "e1", Type: m.kind, Sequence: 7, Data: raw})
			for depth := range maxDepth {
				outer, route := wrap(t, e, depth, 7)
				for _, encode := range c.Encode {
					c.says(t, encode(outer), route)
				}
			}
		}
	}
}

// important are the kinds of narrations that no dialect drops.
var important = []narrate.Kind{narrate.Question, narrate.Answer, narrate.Failure}

// toldOfEveryType checks that the frames of an event of any type fit their schemas, and that it has some if it is a
// question, a failure or a final answer in its neutral form, whatever its data. The log makes no difference: the kinds
// take turns.
func (c *watcher) toldOfEveryType(t *testing.T) {
	for _, info := range event.Catalogue {
		if slices.Contains(holdsOthers, info.Type) || strings.HasPrefix(string(info.Type), "inbox.") {
			continue // The inboxes of clients cannot be watched.
		}
		for i, data := range variants(t, info) {
			e := logged(kinds[i%len(kinds)], "x1", event.Event{ID: "e1", Type: info.Type, Sequence: 7, Data: data})
			n, err := narrate.Of(e)
			require.NoError(t, err)
			for _, encode := range c.Encode {
				got := encode(e)
				c.checker.frames(t, got)
				if c.One || slices.Contains(important, n.Kind) {
					require.NotEmpty(t, got, "%s is dropped: %s", info.Type, data)
				}
			}
		}
	}
}

// says checks that some frame has the mark, and that all name the member.
func (c *watcher) says(t *testing.T, got [][]byte, route string) {
	t.Helper()
	require.NotEmpty(t, got)
	said := false
	for _, f := range got {
		said = said || bytes.Contains(f, []byte(mark))
		var v map[string]any
		require.NoError(t, json.Unmarshal(f, &v))
		require.Equal(t, route, c.Member(v), "%s", f)
	}
	require.True(t, said, "%s", got)
}

// maxDepth is one more than the layers around an event that are tried.
const maxDepth = 4

// wrap puts an event of a member's log into that of a team, depth layers down. It
// returns the path of names to the member.
func wrap(t require.TestingT, e event.Event, depth int, seq uint64) (event.Event, string) {
	route := ""
	for layer := range depth {
		inner, err := json.Marshal(e)
		require.NoError(t, err)
		var data event.Data = event.TeamMemberEventData{MemberName: "Coder", MemberID: "x1", Seq: e.Sequence, Event: inner}
		name := "Coder"
		if layer > 0 {
			name = fmt.Sprintf("node%d", layer)
			data = event.TeamSubTeamEventData{SubTeamNodeName: name, SubTeamID: "t" + name, Seq: e.Sequence, SubTeamEvent: inner}
		}
		route = strings.TrimSuffix(name+"/"+route, "/")
		raw, err := json.Marshal(data)
		require.NoError(t, err)
		e = logged(id.KindTeam, "t1", event.Event{ID: fmt.Sprintf("o%d.%d", layer, seq), Type: data.EventType(), Sequence: seq, Data: raw})
	}
	return e, route
}

// unwrapped checks with random histories that a member's events have the frames that
// they have in the member's own log, but for their positions and whose they are.
func (c *watcher) unwrapped(t *testing.T) {
	var types []event.Info
	for _, info := range event.Catalogue {
		if !slices.Contains(holdsOthers, info.Type) && !strings.HasPrefix(string(info.Type), "inbox.") && !strings.HasPrefix(string(info.Type), "session.") {
			types = append(types, info)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(r, "events")
		outer := uint64(0)
		for i := range n {
			outer += rapid.Uint64Range(1, 3).Draw(r, "gap") // Events of others are between.
			info := types[rapid.IntRange(0, len(types)-1).Draw(r, "type")]
			text := rapid.OneOf(rapid.SampledFrom(words), rapid.String()).Draw(r, "text")
			e := logged(id.KindMember, "x1", event.Event{
				ID: fmt.Sprintf("e%d", i), Type: info.Type, Sequence: uint64(i + 1),
				Data: fill(t, info, text, `{"k":`+jsonString(text)+`}`, rapid.IntRange(0, 5).Draw(r, "n")),
			})
			depth := rapid.IntRange(0, maxDepth-1).Draw(r, "depth")
			wrapped, route := wrap(r, e, depth, outer)
			for _, encode := range c.Encode {
				c.same(r, encode(e), encode(wrapped), route)
			}
		}
	})
}

func (c *watcher) same(t require.TestingT, bare, wrapped [][]byte, route string) {
	require.Len(t, wrapped, len(bare))
	for i := range bare {
		c.checker.frame(t, wrapped[i])
		var want, got map[string]any
		require.NoError(t, json.Unmarshal(bare[i], &want))
		require.NoError(t, json.Unmarshal(wrapped[i], &got))
		require.Equal(t, route, c.Member(got), "%s", wrapped[i])
		c.Strip(want)
		c.Strip(got)
		require.Equal(t, want, got)
	}
}

// unreadable checks that an event of another log which cannot be read is not silence.
func (c *watcher) unreadable(t *testing.T) {
	for i, kind := range holdsOthers {
		for _, data := range []string{``, `{`, `[]`, `{"event":7,"sub_team_event":7}`, `{"event":"x","sub_team_event":"x"}`} {
			e := logged(id.KindTeam, "t1", event.Event{ID: fmt.Sprintf("e%d", i), Type: kind, Sequence: 7, Data: []byte(data)})
			for _, encode := range c.Encode {
				got := encode(e)
				require.Len(t, got, 1, "%s", data)
				r := c.checker.frame(t, got[0])
				require.Equal(t, e.Sequence, r.seq+r.watched)
			}
		}
	}
}

func jsonString(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(b)
}
