package fold_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/gateway/agui/fold"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

var variants = []fold.Variant{fold.V1, fold.V0, fold.V0Subagents}

// logs are the logs of sessions and of teams in the golden transcripts of all dialects.
func logs(t testing.TB) map[string][]event.Event {
	t.Helper()
	out := map[string][]event.Event{}
	paths, err := filepath.Glob("../../*/testdata/transcripts/*.txtar") // of the other protocols
	require.NoError(t, err)
	own, err := filepath.Glob("testdata/transcripts/*.txtar")
	require.NoError(t, err)
	paths = append(paths, own...)
	for _, p := range paths {
		archive, err := txtar.ParseFile(p)
		require.NoError(t, err)
		for _, f := range archive.Files {
			if f.Name != "bus" {
				continue
			}
			for _, kind := range []id.Kind{id.KindSession, id.KindTeam} {
				if events := readOf(t, kind, f.Data); len(events) > 0 {
					out[string(kind)+" of "+p] = events
				}
			}
		}
	}
	require.Greater(t, len(out), 20)
	maps.Copy(out, written(t))
	for seed := range uint64(3) {
		out[fmt.Sprintf("site %d", seed)] = newSite(t, seed).live(45)
	}
	return out
}

// empty returns the projection of what was before the events.
func empty(v fold.Variant, events []event.Event) *fold.Thread {
	if len(events) > 0 && strings.Contains(events[0].Subject, ".team.") {
		return fold.Of(id.KindTeam, v)
	}
	return fold.New(v)
}

// written are logs of what no transcript has.
func written(t testing.TB) map[string][]event.Event {
	t.Helper()
	second := event.MessageReceivedData{MessageID: "m2", RunID: "r2", Content: "and that", Queued: 1}
	solving := func(step string) event.Part {
		return event.Part{JobID: "j" + step, StepID: step, Stage: event.StageSolving}
	}
	client := event.InputRequestedData{InputID: "approve_c1", RunID: "r1", Scope: event.ScopeClientTool, CallID: "c1", Tool: "paint"}
	call := event.InputRequestedData{InputID: "approve_c2", RunID: "r1", Scope: event.ScopeTool, CallID: "c2", Tool: "write", Digest: "d", TimeoutSeconds: 5}
	return map[string][]event.Event{
		"expiry": logOf(t, asking(
			event.InputExpiredData{InputID: "q1", RunID: "r1"}, event.PlanCancelledData{RunID: "r1", PlanID: "p", Reason: "timeout"},
			event.RunCompletedData{RunID: "r1", Outcome: "timeout", Content: "Nobody has answered."})...),
		"files and to-dos": logOf(t, append(begun(),
			event.TodosUpdatedData{RunID: "r1", Todos: []event.Todo{{Description: "first", Status: event.TodoPending}}},
			event.ArtifactPersistedData{Artifact: event.Artifact{ArtifactID: "f1", RunID: "r1", Path: "a.txt", Type: "file"}},
			event.TodosUpdatedData{RunID: "r1", Todos: []event.Todo{{Description: "first", Status: event.TodoDone}}},
			event.ArtifactUpdatedData{Artifact: event.Artifact{ArtifactID: "f1", RunID: "r1", Path: "a.txt", Type: "file", Size: 1, Object: &event.ObjectRef{Log: "member.m1", Digest: "d1"}}},
			event.RunCompletedData{RunID: "r1", Content: "done"})...),
		"both kinds of questions": logOf(t, asking(
			event.InputAnsweredData{InputID: "q1", RunID: "r1", CommandID: "x1", Decision: event.DecisionApprove, Segment: "s2"},
			event.StepStartedData{RunID: "r1", Step: event.Step{ID: "a", Title: "A"}, Part: solving("a")},
			event.StepStartedData{RunID: "r1", Step: event.Step{ID: "b", Title: "B"}, Part: solving("b")},
			event.MessageStartedData{MessageID: "t1", RunID: "r1", Attempt: 1, Part: solving("a")},
			event.MessageDeltaData{MessageID: "t1", RunID: "r1", Attempt: 1, Text: "half ", Part: solving("a")},
			client, event.JobSuspendedData{RunID: "r1", Inputs: []string{client.InputID}, Part: solving("a")},
			call, event.JobSuspendedData{RunID: "r1", Inputs: []string{call.InputID}, Part: solving("b")},
			event.InputExpiredData{InputID: call.InputID, RunID: "r1"},
			event.InputAnsweredData{InputID: client.InputID, RunID: "r1", CommandID: "x2", Decision: event.DecisionApprove, Scope: event.ScopeClientTool, CallID: "c1", Result: "red", Segment: "s3"},
			event.JobStartedData{RunID: "r1", Attempt: 2, Part: solving("a")},
			event.StepCompletedData{RunID: "r1", Output: "A", Part: solving("a")},
			event.StepFailedData{RunID: "r1", Code: "TOOL_DENIED", Message: "no", Part: solving("b")},
			event.RunFailedData{RunID: "r1", Code: "TASKS_FAILED", Message: "no", Answer: "Half of it."})...),
		"a call that a person changes": logOf(t, changing()...),
		"agents that ask": logOf(t, asking(
			event.InputAnsweredData{InputID: "q1", RunID: "r1", CommandID: "x1", Decision: event.DecisionApprove, Segment: "s2"},
			event.StepStartedData{RunID: "r1", Step: event.Step{ID: "a", Title: "A"}, Part: solving("a")},
			event.StepStartedData{RunID: "r1", Step: event.Step{ID: "b", Title: "B"}, Part: solving("b")},
			asks("ask_1", `["red","green"]`, solving("a")), asks("ask_2", "", solving("b")),
			event.InputAnsweredData{InputID: "ask_2", RunID: "r1", CommandID: "x2", Decision: event.DecisionAnswer, Scope: event.ScopeAgent, Segment: "s3"},
			asks("ask_3", "", solving("b")),
			event.InputExpiredData{InputID: "ask_1", RunID: "r1", Scope: event.ScopeAgent},
			event.StepCompletedData{RunID: "r1", Output: "A", Part: solving("a")},
			event.InputExpiredData{InputID: "ask_3", RunID: "r1", Scope: event.ScopeAgent, Withdrawn: true},
			event.StepFailedData{RunID: "r1", Code: "AGENT_LOST", Message: "no", Part: solving("b")},
			event.RunFailedData{RunID: "r1", Code: "TASKS_FAILED", Message: "no", Answer: "Half of it."})...),
		"an agent that asks": logOf(t,
			event.SessionCreatedData{}, event.MessageReceivedData{MessageID: "m1", RunID: "r1", Content: "paint", RunSpec: event.RunSpec{Mode: event.ModeChat}},
			event.RunStartedData{RunID: "r1", MessageID: "m1", Content: "paint", Mode: event.ModeChat},
			event.JobStartedData{RunID: "r1", Attempt: 1, SwarmTask: "work_1"}, asks("ask_1", `["red","green"]`, event.Part{}),
			event.InputAnsweredData{InputID: "ask_1", RunID: "r1", CommandID: "x1", Decision: event.DecisionReject, Scope: event.ScopeAgent, By: "ann"},
			asks("ask_2", "", event.Part{}), event.InputExpiredData{InputID: "ask_2", RunID: "r1", Scope: event.ScopeAgent, Withdrawn: true},
			event.JobStartedData{RunID: "r1", Attempt: 2, SwarmTask: "work_1"}, asks("ask_3", "", event.Part{}), event.RunCancelledData{RunID: "r1"}),
		"cancelled in the queue": logOf(t, append(begun(), second, event.RunCancelledData{RunID: "r2"}, event.RunCompletedData{RunID: "r1", Content: "done"})...),
		"refused, then queued": logOf(t, append(begun(),
			event.MessageRefusedData{MessageID: "m3", Code: "SESSION_BUSY", Message: "busy"}, second,
			event.RunCompletedData{RunID: "r1", Content: "done"},
			event.RunStartedData{RunID: "r2", MessageID: "m2"}, event.RunCompletedData{RunID: "r2", Content: "that too"}, event.SessionClosedData{})...),
	}
}

// read returns the events of a session's log in lines of JSON, or else of a team's.
func read(t testing.TB, lines []byte) []event.Event {
	t.Helper()
	if events := readOf(t, id.KindSession, lines); len(events) > 0 {
		return events
	}
	return readOf(t, id.KindTeam, lines)
}

func readOf(t testing.TB, kind id.Kind, lines []byte) (out []event.Event) {
	t.Helper()
	for line := range bytes.Lines(lines) {
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] != '{' {
			continue
		}
		var e event.Event
		require.NoError(t, json.Unmarshal(line, &e))
		if strings.Contains(e.Subject, "."+string(kind)+".") && e.Sequence > 0 {
			out = append(out, e)
		}
	}
	return out
}

// play returns the frames of a log, for each event.
func play(v fold.Variant, events []event.Event) (out [][]fold.Frame) {
	t := empty(v, events).Clone("thread-1")
	for _, e := range events {
		out = append(out, t.Next(e))
	}
	return out
}

// shown are the frames of a stream of the thread.
func shown(frames []fold.Frame) []fold.Frame {
	return slices.DeleteFunc(slices.Clone(frames), func(f fold.Frame) bool { return f.Shown == fold.OwnStream })
}

// TestFramesAreEncodedOnceForAllViewers: who follows with the frames of another viewer has those that it would have made, with its
// own name of the thread, wherever it has joined.
func TestFramesAreEncodedOnceForAllViewers(t *testing.T) {
	shared := 0
	for name, events := range logs(t) {
		for _, v := range variants {
			base, first := empty(v, events), empty(v, events).Clone("thread-1")
			var all []*fold.Shared
			for _, e := range events {
				all = append(all, first.Share(e))
			}
			for join := 0; join < len(events); join += 5 {
				alone, like := base.Clone("another"), base.Clone("another")
				for i, e := range events[join:] {
					want, got := alone.Next(e), like.Like(e, all[join+i])
					require.Equal(t, want, got, "%s, event %d", name, join+i+1)
					for n := range got {
						if &got[n].Data[0] == &all[join+i].Frames[n].Data[0] {
							shared++
						} else {
							require.Contains(t, string(got[n].Data), `"threadId":"another"`)
						}
					}
				}
				require.Equal(t, alone.Beginning(), like.Beginning())
				for _, e := range events[join:min(join+5, len(events))] {
					base.Take(e)
				}
			}
		}
	}
	require.Greater(t, shared, 1000)
}

// TestStreamsKeepTheRules: a stream of a thread has nothing that a client of AG-UI refuses.
func TestStreamsKeepTheRules(t *testing.T) {
	for name, events := range logs(t) {
		for _, v := range variants {
			r := newRules()
			for i, frames := range play(v, events) {
				for _, f := range shown(frames) {
					require.NoError(t, r.take(f), "%s, %s, event %d (%s)", name, v.Name(), i+1, events[i].Type)
				}
			}
		}
	}
}

// TestFoldingIsPlaying: a viewer that comes at any position gets what one gets who was there before.
func TestFoldingIsPlaying(t *testing.T) {
	for name, events := range logs(t) {
		for _, v := range variants {
			whole := play(v, events)
			base := empty(v, events)
			for cut := range events {
				viewer := base.Clone("thread-1")
				for i, e := range events[cut:] {
					require.Equal(t, whole[cut+i], viewer.Next(e), "%s, %s: cut before event %d, event %d", name, v.Name(), cut+1, cut+i+1)
				}
				base.Take(events[cut])
			}
		}
	}
}

// TestAnyCutJoins: who joins at any position keeps the rules, and ends with the messages of one who saw all.
func TestAnyCutJoins(t *testing.T) {
	for name, events := range logs(t) {
		base, whole, own := empty(fold.V1, events), &client{}, map[string]bool{}
		for _, e := range events {
			if d, err := event.As[event.InputRequestedData](e); err == nil && d.Scope == event.ScopeClientTool {
				own[d.CallID] = true
			}
		}
		for _, frames := range play(fold.V1, events) {
			for _, f := range shown(frames) {
				whole.take(f)
			}
		}
		for cut, e := range events {
			base.Take(e)
			viewer, r, c := base.Clone("thread-1"), newRules(), &client{}
			frames := viewer.Prelude()
			for _, next := range events[cut+1:] {
				frames = append(frames, viewer.Next(next)...)
			}
			for _, f := range shown(frames) {
				require.NoError(t, r.take(f), "%s: joined behind event %d", name, cut+1)
				c.take(f)
			}
			require.Equal(t, whole.seen(own), c.seen(own), "%s: joined behind event %d", name, cut+1)
		}
	}
}

// TestNoFrameHasNull: clients refuse null for a member that is optional.
func TestNoFrameHasNull(t *testing.T) {
	for name, events := range logs(t) {
		for _, frames := range play(fold.V1, events) {
			for _, f := range frames {
				require.False(t, strings.Contains(string(f.Data), ":null"), "%s: %s", name, f.Data)
			}
		}
	}
}

// TestDamagedLogsKeepTheRules: whatever a log has lost, or has twice, clients of AG-UI refuse nothing.
func TestDamagedLogsKeepTheRules(t *testing.T) {
	all := logs(t)
	names := slices.Sorted(maps.Keys(all))
	rapid.Check(t, func(t *rapid.T) {
		events := slices.Clone(all[rapid.SampledFrom(names).Draw(t, "log")])
		for range rapid.IntRange(1, 6).Draw(t, "damages") {
			i := rapid.IntRange(0, len(events)-1).Draw(t, "at")
			switch rapid.SampledFrom([]string{"drop", "repeat", "move"}).Draw(t, "damage") {
			case "drop":
				if len(events) > 1 {
					events = slices.Delete(events, i, i+1)
				}
			case "repeat":
				events = slices.Insert(events, i, events[i])
			default:
				j := rapid.IntRange(0, len(events)-1).Draw(t, "to")
				events[i], events[j] = events[j], events[i]
			}
		}
		for i := range events {
			events[i].Sequence = uint64(i + 1)
		}
		for _, v := range variants {
			r := newRules()
			for i, frames := range play(v, events) {
				for _, f := range shown(frames) {
					if err := r.take(f); err != nil {
						t.Fatalf("%s, event %d (%s): %v", v.Name(), i+1, events[i].Type, err)
					}
				}
			}
		}
	})
}
