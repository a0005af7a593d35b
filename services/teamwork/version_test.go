package teamwork_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/teamwork"
)

var update = flag.Bool("update", false, "write what is missing in testdata")

// histories make the logs in testdata that every version of the fold is tried on. They are
// made once and kept: what decides may change, what was decided does not.
var histories = map[string]func(*testing.T) []event.Event{
	"pair":   func(*testing.T) []event.Event { return eventful(1) },
	"others": func(*testing.T) []event.Event { return eventful(2) },
	"nested": nestedHistory,
}

// Processes with the same SnapshotVersion share snapshots, so the same log must become the same
// state, at each of its events, for as long as the version stays.
func TestAFoldOfAnotherKindHasAnotherVersion(t *testing.T) {
	file := filepath.Join("testdata", fmt.Sprintf("fold-v%d.txt", teamwork.SnapshotVersion))
	want := sums(t, file)
	for name, history := range histories {
		log := filepath.Join("testdata", name+".jsonl")
		if _, err := os.Stat(log); err != nil && *update {
			keep(t, log, history(t))
		}
		got := foldSum(t, log)
		if want[name] == "" && *update {
			f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
			require.NoError(t, err)
			_, err = fmt.Fprintln(f, name, got)
			require.NoError(t, err)
			require.NoError(t, f.Close())
			want[name] = got
		}
		require.NotEmpty(t, want[name], "no sum of %s for this version: run the test with -update", name)
		require.Equal(t, want[name], got, "%s is folded into something else than by others of version %d. Raise SnapshotVersion, and run the test with -update.",
			name, teamwork.SnapshotVersion)
	}
}

// sums are those of a version, by the log.
func sums(t *testing.T, file string) map[string]string {
	t.Helper()
	out := map[string]string{}
	raw, err := os.ReadFile(file)
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	for line := range strings.Lines(string(raw)) {
		name, sum, _ := strings.Cut(strings.TrimSpace(line), " ")
		out[name] = sum
	}
	return out
}

// foldSum is the hash of the states that a log goes through.
func foldSum(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 1<<20)
	s, sum := &teamwork.State{}, sha256.New()
	for lines.Scan() {
		var e event.Event
		require.NoError(t, json.Unmarshal(lines.Bytes(), &e))
		require.NoError(t, s.Apply(e))
		sum.Write(snapshotOf(t, s))
	}
	require.NoError(t, lines.Err())
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// keep writes a log.
func keep(t *testing.T, file string, events []event.Event) {
	t.Helper()
	var b bytes.Buffer
	for _, e := range events {
		line, err := json.Marshal(e)
		require.NoError(t, err)
		b.Write(append(line, '\n'))
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, b.Bytes(), 0o644))
}

// eventful is the history of a team in which everything happens, by chance.
func eventful(seed int) []event.Event {
	return rapid.Custom(func(r *rapid.T) []event.Event {
		a := &anyTeam{world: newWorld(r, pair())}
		actions := a.actions()
		names := []string{"message", "message", "pause", "resume", "stop", "act", "act", "serve", "serve", "works", "works", "works", "relay", "relay"}
		for range 80 {
			name := rapid.SampledFrom(names).Draw(r, "action")
			if name == "works" && len(a.busy()) == 0 || name == "relay" && len(a.state.Follow()) == 0 {
				continue
			}
			actions[name](r)
		}
		a.settles(r)
		a.handle(r, a.command(command.CloseTeam, a.id("c"), "", command.CloseSession{}))
		return a.events
	}).Example(seed)
}

// nestedHistory is that of a team with a nested one, which works, asks and is paused.
func nestedHistory(t *testing.T) []event.Event {
	w := started(t, three())
	w.do(command.SendMessage, "m1", "backend/deep/Coder", command.UserMessage{Content: "deep work"})
	def, parent, err := w.state.Nested("backend")
	require.NoError(t, err)
	w.happens("backend", event.TeamCreatedData{TeamID: "x", Definition: def, Parent: &parent})
	w.happens("backend", event.TeamMessageData{MessageID: "m1", Member: "deep", Route: "Coder"})
	w.happens("backend", event.TeamStatusData{NewStatus: event.TeamRunning, OldStatus: event.TeamIdle})
	w.relay("backend")
	place, err := w.state.Locate("backend/Boss")
	require.NoError(t, err)
	asks, err := json.Marshal(event.Event{Type: event.InputRequested, Data: must(t, event.InputRequestedData{
		InputID: "approve_c1", Scope: event.ScopeTool, CallID: "c1", Tool: "pay",
	})})
	require.NoError(t, err)
	w.happens("backend", event.TeamMemberEventData{MemberName: "Boss", MemberID: place.ID.String(), Seq: 4, Event: asks})
	w.relay("backend")
	w.do(command.PauseTeam, "p1", "", nil)
	w.happens("backend", event.TeamPausedData{CommandID: "c"})
	w.relay("backend")
	w.do(command.ActTeam, "a1", "", act("Lead", "call-1", command.ToolSendMessage, map[string]any{"recipient_name": "Writer", "content": "x"}))
	w.do(command.ResumeTeam, "r1", "", nil)
	w.happens("backend", event.TeamResumedData{CommandID: "d"})
	w.happens("backend", event.TeamStatusData{NewStatus: event.TeamIdle, OldStatus: event.TeamRunning})
	w.serve()
	for _, name := range []string{"backend", "Writer"} {
		w.relay(name)
	}
	return w.events
}
