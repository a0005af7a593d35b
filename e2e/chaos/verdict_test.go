package chaos_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/chaos/fault"
	"github.com/waggle-dev/waggle/e2e/chaos/report"
	"github.com/waggle-dev/waggle/e2e/chaos/verify"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

const session = "red.session.s1"

// stored is a log of the types, with data.
func stored(t *testing.T, name string, data ...event.Data) []verify.Stored {
	t.Helper()
	var out []verify.Stored
	for i, d := range data {
		raw, err := json.Marshal(d)
		require.NoError(t, err)
		seq := uint64(i + 1)
		e := event.Event{ID: fmt.Sprintf("e%d", seq), Type: d.EventType(), Subject: name, Sequence: seq, Data: raw}
		out = append(out, verify.Stored{Event: e, Header: seq, Raw: string(raw)})
	}
	return out
}

// story is a run that pays once and asks once.
func story(t *testing.T) []verify.Stored {
	t.Helper()
	return stored(
		t, session,
		event.MessageReceivedData{MessageID: "m1", RunID: "r1"},
		event.InputRequestedData{InputID: "i1", RunID: "r1"},
		event.InputAnsweredData{InputID: "i1", RunID: "r1"},
		event.ToolCalledData{CallID: "c1", RunID: "r1", Tool: "bank_pay", Arguments: json.RawMessage(`{"purpose":"p1"}`)},
		event.ToolCompletedData{CallID: "c1", RunID: "r1"},
		event.RunCompletedData{RunID: "r1"},
	)
}

func judged(logs map[string][]verify.Stored, paid int) *verify.Verdict {
	v := &verify.Verdict{}
	verify.Logs(v, logs, func(string) int { return paid })
	return v
}

// TestTheJudgeSeesEveryBreach: a log that keeps its promises is fine, and each way to
// break them is seen under the promise that it breaks.
func TestTheJudgeSeesEveryBreach(t *testing.T) {
	fine := judged(map[string][]verify.Stored{session: story(t)}, 1)
	for _, promise := range []int{verify.PromiseLog, verify.PromiseWork, verify.PromiseEffects, verify.PromiseDecisions, verify.PromiseIsolation} {
		require.True(t, fine[promise].OK(), "%v", fine.Notes())
	}
	for _, c := range []struct {
		name    string
		promise int
		word    string
		paid    int
		change  func([]verify.Stored) []verify.Stored
	}{
		{"a hole", verify.PromiseLog, "lost", 1, func(l []verify.Stored) []verify.Stored { return append(l[:2:2], l[3:]...) }},
		{"no head", verify.PromiseLog, "lost", 1, func(l []verify.Stored) []verify.Stored { return l[1:] }},
		{"an event twice", verify.PromiseLog, "doubled", 1, func(l []verify.Stored) []verify.Stored { return append(l, l[5]) }},
		{"another order", verify.PromiseLog, "reordered", 1, func(l []verify.Stored) []verify.Stored {
			l[3], l[4] = l[4], l[3]
			return l
		}},
		{"a header that lies", verify.PromiseLog, "broken", 1, func(l []verify.Stored) []verify.Stored {
			l[3].Header++
			return l
		}},
		{"no end", verify.PromiseWork, "lost", 1, func(l []verify.Stored) []verify.Stored { return l[:5] }},
		{"two ends", verify.PromiseWork, "doubled", 1, func(l []verify.Stored) []verify.Stored { return append(l, l[5]) }},
		{"paid twice", verify.PromiseEffects, "doubled", 2, func(l []verify.Stored) []verify.Stored { return l }},
		{"not paid", verify.PromiseEffects, "lost", 0, func(l []verify.Stored) []verify.Stored { return l }},
		{"no outcome", verify.PromiseEffects, "lost", 1, func(l []verify.Stored) []verify.Stored { return append(l[:4:4], l[5]) }},
		{"two answers", verify.PromiseDecisions, "doubled", 1, func(l []verify.Stored) []verify.Stored { return append(l, l[2]) }},
		{"no answer", verify.PromiseDecisions, "lost", 1, func(l []verify.Stored) []verify.Stored { return l[:2] }},
		{"another's word", verify.PromiseIsolation, "broken", 1, func(l []verify.Stored) []verify.Stored {
			l[0].Raw += "blue-load-1"
			return l
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := judged(map[string][]verify.Stored{session: c.change(story(t))}, c.paid)
			require.False(t, v[c.promise].OK())
			require.Contains(t, v[c.promise].String(), c.word)
		})
	}
}

// TestTheJudgeOfWhatClientsSaw: frames that are missing, come twice, in another order or
// differ are seen; pieces of texts may be cut in another way, and have to add up.
func TestTheJudgeOfWhatClientsSaw(t *testing.T) {
	loose := func(raw string) (of, text string, is bool) {
		text, is = strings.CutPrefix(raw, "text ")
		return "m1", text, is
	}
	again := []verify.Seen{{Seq: 1, Raw: "a"}, {Seq: 2, Raw: "text hel"}, {Seq: 3, Raw: "text lo"}, {Seq: 5, Raw: "b"}}
	for _, c := range []struct {
		name, want string
		seen       []verify.Seen
	}{
		{"the same", "ok", again},
		{"texts cut in another way", "ok", []verify.Seen{{Seq: 1, Raw: "a"}, {Seq: 3, Raw: "text hello"}, {Seq: 5, Raw: "b"}}},
		{"a piece less", "lost", []verify.Seen{{Seq: 1, Raw: "a"}, {Seq: 2, Raw: "text hel"}, {Seq: 5, Raw: "b"}}},
		{"a piece twice", "doubled", []verify.Seen{{Seq: 1, Raw: "a"}, {Seq: 3, Raw: "text hello"}, {Seq: 4, Raw: "text lo"}, {Seq: 5, Raw: "b"}}},
		{"a frame less", "lost", []verify.Seen{{Seq: 1, Raw: "a"}, {Seq: 3, Raw: "text hello"}}},
		{"a frame twice", "doubled", append([]verify.Seen{{Seq: 1, Raw: "a"}}, again...)},
		{"another order", "reordered", []verify.Seen{{Seq: 5, Raw: "b"}, {Seq: 3, Raw: "text hello"}, {Seq: 1, Raw: "a"}}},
		{"another frame", "broken", []verify.Seen{{Seq: 1, Raw: "x"}, {Seq: 3, Raw: "text hello"}, {Seq: 5, Raw: "b"}}},
		{"a frame that is not in the log", "doubled", append([]verify.Seen{{Seq: 0, Raw: "z"}}, again...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := &verify.Verdict{}
			verify.Frames(v, verify.Report{Who: "x", Tenant: "red", Seen: c.seen, Loose: loose}, again)
			require.Contains(t, v[verify.PromiseResume].String(), c.want)
		})
	}
}

// TestTheJudgeOfWhatWasAsked: a command that is in no log is lost, one that is there twice
// is doubled, and so are ends.
func TestTheJudgeOfWhatWasAsked(t *testing.T) {
	logs := map[string][]verify.Stored{session: story(t)}
	r := verify.Report{Who: "x", Logs: []string{session}, Asked: []string{"m1"}, Ended: map[string]int{"m1": 1}, Unknown: 1}
	v := &verify.Verdict{}
	verify.Requests(v, r, logs)
	require.Equal(t, "ok (2), unknown 1", v[verify.PromiseWork].String())
	r.Asked, r.Ended = []string{"m2"}, map[string]int{"m1": 2}
	v = &verify.Verdict{}
	verify.Requests(v, r, logs)
	require.Equal(t, "lost 1, doubled 1 (2), unknown 1", v[verify.PromiseWork].String())
}

// TestRelaysAreJudged: what a team's log holds of its members is in their order.
func TestRelaysAreJudged(t *testing.T) {
	relay := func(seqs ...uint64) *verify.Cell {
		var data []event.Data
		for _, seq := range seqs {
			data = append(data, event.TeamMemberEventData{MemberID: "a1", Seq: seq, Event: json.RawMessage("{}")})
		}
		v := judged(map[string][]verify.Stored{"red.team.t1": stored(t, "red.team.t1", data...)}, 0)
		return &v[verify.PromiseLog]
	}
	require.True(t, relay(1, 2, 3).OK())
	require.Equal(t, 1, relay(1, 3).Lost)
	require.Equal(t, 1, relay(1, 1).Doubled)
	require.Equal(t, 1, relay(1, 2, 3, 2).Reordered)
}

// TestTheTable shows what was not possible, what was broken, and how to see it again.
func TestTheTable(t *testing.T) {
	broken := judged(map[string][]verify.Stored{session: story(t)[1:]}, 1)
	var b strings.Builder
	report.Table(&b, 42, []report.Row{
		{Fault: "kill", Verdict: broken, Evidence: []string{"process 1 is gone"}, Units: 3},
		{Fault: "cut", Why: "namespaces need root"},
		{Fault: "roll", Verdict: broken, Returns: 1, Graceful: &report.Graceful{Clients: 9, Restarts: 2, Asked: 70, Events: 900}},
	})
	for _, want := range []string{
		"| kill |", "lost 1 (5)", "unknown", "| cut |", "not possible here: namespaces need root", "- kill: process 1 is gone",
		"| roll | 9 | 2 | 1 | 70 | 0 | 900 | 0 |", "WAGGLE_CHAOS_SEED=42",
	} {
		require.Contains(t, b.String(), want)
	}
	require.False(t, broken.OK())
	require.Contains(t, strings.Join(broken.Notes(), "\n"), "log: lost: ")
}

// TestEveryFaultHasAName: names are unique, and the short run is a part of the long one.
func TestEveryFaultHasAName(t *testing.T) {
	names, ids := map[string]bool{}, map[string]bool{}
	for _, f := range fault.Matrix() {
		id := strings.Join(regexp.MustCompile("[A-Za-z0-9]+").FindAllString(f.Name, -1), "-")
		require.False(t, names[f.Name] || ids[id], "%s: clients are named after it", f.Name)
		ids[id] = true
		require.NotNil(t, f.Strike, f.Name)
		names[f.Name] = true
	}
	require.Len(t, fault.Smoke(), 8)
	for _, f := range fault.Smoke() {
		require.True(t, names[f.Name], f.Name)
	}
}

// TestADeadlineThatPassesEarly: where clocks differ, that is a broken promise.
func TestADeadlineThatPassesEarly(t *testing.T) {
	var v verify.Verdict
	verify.Deadlines(&v, map[string][]verify.Stored{"red.task.1": {
		{Event: event.Event{Type: event.TaskFinishedData{}.EventType(), Data: []byte(`{"code":"TASK_TIMEOUT"}`)}},
		{Event: event.Event{Type: event.TaskFinishedData{}.EventType(), Data: []byte(`{"status":"completed"}`)}},
		{Event: event.Event{Type: event.InputExpiredData{}.EventType(), Data: []byte(`{}`)}},
	}})
	require.Equal(t, 2, v[verify.PromiseWork].Broken)
}
