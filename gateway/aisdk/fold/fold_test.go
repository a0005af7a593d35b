package fold_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/gateway/aisdk/fold"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

var update = flag.Bool("update", false, "rewrite the golden streams")

// majors are the forms of the protocol.
var majors = map[string]fold.Options{"6": {}, "7": {Seven: true}}

// recorded are the logs of sessions in the transcripts of all protocols: of real runs, with the scripts of models.
func recorded(t testing.TB) map[string][]event.Event {
	t.Helper()
	out := map[string][]event.Event{}
	for _, pattern := range []string{"../../*/testdata/transcripts/*.txtar", "../../*/fold/testdata/transcripts/*.txtar"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			archive, err := txtar.ParseFile(path)
			require.NoError(t, err)
			for _, f := range archive.Files {
				if events := session(t, f); len(events) > 0 {
					out[path] = events
				}
			}
		}
	}
	require.Greater(t, len(out), 20)
	return out
}

// session returns the events of a session in a section of a transcript.
func session(t testing.TB, f txtar.File) (out []event.Event) {
	t.Helper()
	if f.Name != "bus" {
		return nil
	}
	for line := range bytes.Lines(f.Data) {
		var e event.Event
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] != '{' {
			continue
		}
		require.NoError(t, json.Unmarshal(line, &e))
		if strings.Contains(e.Subject, ".session.") && e.Sequence > 0 {
			out = append(out, e)
		}
	}
	return out
}

// logs are those of recorded, and made ones.
func logs(t testing.TB) map[string][]event.Event {
	t.Helper()
	out := recorded(t)
	maps.Copy(out, made(t))
	return out
}

// play returns the frames of a log, for each event.
func play(o fold.Options, events []event.Event) (out [][]fold.Frame) {
	t := fold.New(o)
	for _, e := range events {
		out = append(out, t.Next(e))
	}
	return out
}

// TestStreams: logs of real runs give the chunks that are written down. -update rewrites them.
func TestStreams(t *testing.T) {
	names := []string{"approval", "approvals", "budget", "cancel", "chat", "failure", "plan", "reasoning", "tools"}
	all := recorded(t)
	for _, name := range names {
		events := all["../../agui/fold/testdata/transcripts/"+name+".txtar"]
		require.NotEmpty(t, events, name)
		var lines strings.Builder
		for _, frames := range play(majors["7"], events) {
			for _, f := range frames {
				require.NotContains(t, string(f.Data), "\n")
				lines.Write(append(f.Data, '\n'))
				if f.Ends {
					lines.WriteString(fold.Done + "\n")
				}
			}
		}
		path := filepath.Join("testdata", name+".jsonl")
		if *update {
			require.NoError(t, os.MkdirAll("testdata", 0o750))
			require.NoError(t, os.WriteFile(path, []byte(lines.String()), 0o600))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), lines.String(), "%s; run with -update if this is meant", name)
	}
}

// shown gives the frames of each run to a client.
func shown(o fold.Options, all ...[]fold.Frame) (map[string]*client, error) {
	runs := map[string]*client{}
	for i, frames := range all {
		for _, f := range frames {
			c := runs[f.Run]
			if c == nil {
				c = &client{seven: o.Seven}
				runs[f.Run] = c
			}
			if err := c.take(f.Data); err != nil {
				return runs, fmt.Errorf("event %d: %s: %w", i+1, f.Data, err)
			}
			if f.Ends == c.streaming {
				return runs, fmt.Errorf("event %d: %s: ends is %v", i+1, f.Data, f.Ends)
			}
		}
	}
	return runs, nil
}

// TestClientsRefuseNothing: each text, step and response that begins has its end, and each call is known.
func TestClientsRefuseNothing(t *testing.T) {
	for name, events := range logs(t) {
		for major, o := range majors {
			_, err := shown(o, play(o, events)...)
			require.NoError(t, err, "%s, ai %s", name, major)
		}
	}
}

// TestAnyPrefixAndTheRest: who joins at any event of a log has in the end what one has who saw all of it.
func TestAnyPrefixAndTheRest(t *testing.T) {
	for name, events := range logs(t) {
		for major, o := range majors {
			whole, err := shown(o, play(o, events)...)
			require.NoError(t, err)
			base := fold.New(o)
			for cut, e := range events {
				base.Take(e)
				run, active := base.Run()
				if !active {
					continue
				}
				viewer := base.Fork()
				rest := [][]fold.Frame{viewer.Prelude()}
				if n := len(rest[0]); base.Resting() {
					rest[0][n-1].Ends = true
				}
				for _, next := range events[cut+1:] {
					rest = append(rest, viewer.Next(next))
				}
				joined, err := shown(o, rest...)
				require.NoError(t, err, "%s, ai %s: joined after event %d", name, major, cut+1)
				require.Equal(t, whole[run].seen(), joined[run].seen(), "%s, ai %s: joined after event %d", name, major, cut+1)
				require.Equal(t, whole[run].metadata, joined[run].metadata, name)
			}
		}
	}
}

// TestFoldingIsPlaying: a viewer that comes at any position gets the frames that one gets who was there before.
func TestFoldingIsPlaying(t *testing.T) {
	for name, events := range logs(t) {
		whole := play(majors["7"], events)
		base := fold.New(majors["7"])
		for cut := range events {
			viewer := base.Fork()
			for i, e := range events[cut:] {
				require.Equal(t, whole[cut+i], viewer.Next(e), "%s: cut before event %d, event %d", name, cut+1, cut+i+1)
			}
			base.Take(events[cut])
		}
	}
}

// TestMessagesAreWhatTheirChunksMake, for pages that load them.
func TestMessagesAreWhatTheirChunksMake(t *testing.T) {
	for name, events := range logs(t) {
		o := majors["7"]
		runs, err := shown(o, play(o, events)...)
		require.NoError(t, err)
		chat := fold.New(o)
		for _, e := range events {
			chat.Take(e)
		}
		messages, _ := chat.Messages(1000)
		for _, m := range messages {
			if m.Role != fold.RoleAssistant {
				continue
			}
			texts := func(parts []map[string]any) (out []any) {
				for _, p := range parts {
					if p["type"] == "text" {
						out = append(out, p["text"])
					}
				}
				return out
			}
			var got []any
			for _, p := range m.Parts {
				if p.Type == "text" {
					got = append(got, p.Text)
				}
			}
			require.Equal(t, texts(runs[m.ID].seen()), got, name)
			again := &client{seven: true}
			for _, f := range chat.Replay(m.ID) {
				require.NoError(t, again.take(f.Data), name)
			}
			require.Equal(t, texts(runs[m.ID].seen()), texts(again.seen()), name)
		}
	}
}

// TestDamagedLogsAreShown: clients accept the chunks of a log with lost or repeated events.
func TestDamagedLogsAreShown(t *testing.T) {
	all := logs(t)
	names := slices.Sorted(maps.Keys(all))
	rapid.Check(t, func(t *rapid.T) {
		events := slices.Clone(all[rapid.SampledFrom(names).Draw(t, "log")])
		for range rapid.IntRange(1, 6).Draw(t, "damages") {
			i, j := rapid.IntRange(0, len(events)-1).Draw(t, "at"), rapid.IntRange(0, len(events)-1).Draw(t, "to")
			switch rapid.SampledFrom([]string{"drop", "repeat", "move"}).Draw(t, "damage") {
			case "drop":
				if len(events) > 1 {
					events = slices.Delete(events, i, i+1)
				}
			case "repeat":
				events = slices.Insert(events, i, events[i])
			default:
				events[i], events[j] = events[j], events[i]
			}
		}
		for i := range events {
			events[i].Sequence = uint64(i + 1)
		}
		for major, o := range majors {
			if _, err := shown(o, play(o, events)...); err != nil {
				t.Fatalf("ai %s: %v", major, err)
			}
		}
	})
}
