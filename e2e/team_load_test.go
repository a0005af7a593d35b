//go:build nightly

package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/verify"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

const (
	// typists stream at once, in five teams of ten; one is nested in a nested one.
	typists = 50
	// typing is the pause between two words of each while all processes live: 125 words a
	// second in all, of which those of nested teams are stored three and four times. Two
	// cores that do everything else as well can do that.
	typing = 400 * time.Millisecond
	// typingOn is the pause while services are killed: the two cores start them, too.
	typingOn = time.Second
	// mishaps is how often the team service that relays is killed.
	mishaps = 20
	// calm is the time without a kill, for the figures of latency.
	calm = 4 * time.Second
)

// typist writes a word after the other until stop is closed, slower once later is.
func typist(later, stop <-chan struct{}) scripted.Script {
	return scripted.Always(scripted.Stream(func(ctx context.Context, w *scripted.Writer) error {
		t, slower := time.NewTicker(typing), later
		defer t.Stop()
		for i := 0; ; i++ {
			if err := w.Text(ctx, fmt.Sprintf("<word %d> ", i)); err != nil {
				return err
			}
			select {
			case <-t.C:
			case <-slower:
				t.Reset(typingOn)
				slower = nil
			case <-stop:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}))
}

// ten are the agents of one team, and what else is in it.
func ten(name string, more ...object) object {
	members := make([]object, 10, 10+len(more))
	for i := range members {
		members[i] = object{"name": fmt.Sprint(name, i)}
	}
	return object{"name": name, "coordinator": name + "0", "members": append(members, more...)}
}

func nest(team object) object { return object{"name": "team-" + team["name"].(string), "team": team} }

// fifty is the team, and the routes of its agents.
func fifty() (team object, routes []string) {
	team = ten("a", nest(ten("b")), nest(ten("c")), nest(ten("d", nest(ten("e")))))
	for prefix, name := range map[string]string{"": "a", "team-b/": "b", "team-c/": "c", "team-d/": "d", "team-d/team-e/": "e"} {
		for i := range 10 {
			routes = append(routes, fmt.Sprint(prefix, name, i))
		}
	}
	return team, routes
}

// TestTheMultiplexerIsKilledTwentyTimes: fifty agents stream into the log of one team, over
// up to three levels, while the process that relays them is killed again and again. Every
// event is there once, in its agent's order and byte for byte, at every level, and
// viewers have seen exactly what is there.
func TestTheMultiplexerIsKilledTwentyTimes(t *testing.T) {
	later, stop := make(chan struct{}), make(chan struct{})
	f := newSplitFleet(t, typist(later, stop), splitOptions{Teams: 3})
	team, routes := fifty()
	view := f.found(team)
	log, path := verify.LogOf(id.KindTeam, view.TeamID), "agent-team/"+view.TeamID
	steady := client.RecordTeam(t, path, f.addrs[0])
	restless := client.RecordTeam(t, path, f.addrs[1], f.addrs[0])
	for i, route := range routes {
		f.message(view.TeamID, route, fmt.Sprint("go ", i))
	}
	ctx, cancel := process.Within(process.MaxWait)
	defer cancel()
	_, err := f.llm.Exchange(ctx, typists)
	require.NoError(t, err, "all agents stream")
	began := time.Now()
	pause(calm)
	calmed := time.Now()
	close(later)
	spent := f.mishaps(log, steady, restless)
	disturbed := time.Now()
	close(stop)

	events := f.idle(log, steady, disturbed, typists)
	logs := map[subject.Log][]verify.Stored{}
	compared := f.faithful(log, logs)
	require.Len(t, logs, typists+4, "all agents and nested teams")
	frames := f.alike(events, path, map[string]*client.TeamRecorder{"the steady viewer": steady, "the restless viewer": restless})
	figures(t, events, steady, began, calmed)
	_, breaks, _ := restless.Frames()
	t.Logf("%d agents in 5 teams: %d events of agents, %d in the team's log, all there once, in order, byte for byte at every level; "+
		"%d frames alike for 3 viewers, one of which came back %d times", typists, compared, len(events), frames, breaks)
	t.Logf("the relay was killed %d times in %s; it went on after %s", mishaps, disturbed.Sub(calmed).Round(time.Second), quantiles(takeovers(t, events, spent)))
}

// mishap is when a team service was killed, and when it was gone.
type mishap struct{ killed, gone time.Time }

// mishaps kills the team service that relays, time and again, once the one before it has
// been replaced.
func (f *splitFleet) mishaps(log subject.Log, steady, restless *client.TeamRecorder) (out []mishap) {
	f.t.Helper()
	for range mishaps {
		m := mishap{killed: time.Now()}
		f.kill(f.owner(log))
		m.gone = time.Now()
		out = append(out, m)
		restless.Break()
		settled := f.launchTeams()
		steady.Until("what happened after the relay was killed", func(s client.Recorded) bool {
			return s.At.After(m.gone) && made(f.t, s).After(m.gone)
		})
		restless.Break()
		settled()
	}
	return out
}

// made is when the event that a frame shows was made.
func made(t *testing.T, s client.Recorded) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, s.Frame().ReceivedAt())
	require.NoError(t, err, "%s", s.Raw)
	return at
}

// takeovers returns how long after each kill the first event was relayed again.
func takeovers(t *testing.T, events []verify.Stored, spent []mishap) (out []time.Duration) {
	t.Helper()
	for _, m := range spent {
		for _, e := range events {
			if e.Time.After(m.gone) {
				out = append(out, e.Time.Sub(m.killed))
				break
			}
		}
	}
	require.Len(t, out, len(spent))
	return out
}

// figures logs the events a second of the time without a kill, and the latency from an
// agent's event to its frame at a viewer.
func figures(t *testing.T, events []verify.Stored, tape *client.TeamRecorder, began, ended time.Time) {
	t.Helper()
	var late []time.Duration
	shots, _, _ := tape.Frames()
	seen := uint64(0)
	for _, s := range shots {
		if s.Event() == seen || s.At.Before(began) || s.At.After(ended) {
			continue
		}
		seen = s.Event()
		if in := event.Unwrap(events[seen-1].Event); in.Type == event.MessageDelta {
			late = append(late, s.At.Sub(in.Time))
		}
	}
	require.NotEmpty(t, late)
	t.Logf("undisturbed: %d events of agents in %s, %.0f a second; from the agent to the viewer %s",
		len(late), ended.Sub(began).Round(time.Second), float64(len(late))/ended.Sub(began).Seconds(), quantiles(late))
}

// TestASlowViewerOfATeam: one of three viewers stops reading while ten members write at
// length, until its gateway holds no more for it. The others are shown everything
// meanwhile, and so is it once it reads on.
func TestASlowViewerOfATeam(t *testing.T) {
	// Each round is ten texts of 120 KB, which a viewer gets twice.
	f := newSplitFleet(t, scripted.Always(scripted.Stream(scripted.Text(repeat(strings.Repeat("text ", 4000), 6)...))), splitOptions{Teams: 1, Queue: 65536})
	view := f.found(ten("a"))
	log, path := verify.LogOf(id.KindTeam, view.TeamID), "agent-team/"+view.TeamID
	lazy, brisk := client.RecordTeam(t, path, f.addrs[0]), client.RecordTeam(t, path, f.addrs[0])
	other := client.RecordTeam(t, path, f.addrs[1])
	lazy.Until("the team is idle", func(s client.Recorded) bool { return is("TEAM_STATUS", "", "new_status", event.TeamIdle)(s.Frame()) })
	resume := lazy.Halt()
	began := time.Now()
	var events []verify.Stored
	for runs, full := 10, false; !full; runs += 10 {
		for i := range 10 {
			f.message(view.TeamID, fmt.Sprint("a", i), "speak at length")
		}
		events = f.idle(log, brisk, began, runs)
		metrics := process.Get(t, "http://"+f.telemetry[f.addrs[0]]+"/metrics").Body
		require.Contains(t, metrics, "\nwaggle_log_viewer_lags_total ")
		full = !strings.Contains(metrics, "\nwaggle_log_viewer_lags_total 0\n")
	}
	end := events[len(events)-1].Sequence
	brisk.UntilEvent(end)
	other.UntilEvent(end)
	took := time.Since(began)
	behind, _, _ := lazy.Frames()
	resume()
	frames := f.alike(events, path, map[string]*client.TeamRecorder{"lazy": lazy, "brisk": brisk, "at the other gateway": other})
	require.Less(t, len(behind), frames)
	_, breaks, _ := lazy.Frames()
	t.Logf("%d frames alike for 4 viewers; one of them read nothing for %s and had %d by then; its line broke %d times",
		frames, took.Round(100*time.Millisecond), len(behind), breaks)
}
