package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/verify"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/directory"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// splitFleet is an installation of processes of which each can be killed: the team services
// apart from everything else, and two gateways.
type splitFleet struct {
	*teamFleet
	dir   *directory.Directory
	teams map[id.Name]*process.Process // the team services, by instance
	gates [2]*process.Process
	addrs [2]string

	worker *process.Process
}

// splitOptions are what an installation has beside the usual.
type splitOptions struct {
	Teams   int    // team services
	Servers string // tool servers, as lines of the configuration
	Shared  string // settings access.see and access.answer; empty = as shipped
	Queue   int    // bytes that a gateway holds for a socket; 0 is the default
}

// newSplitFleet starts an installation.
func newSplitFleet(t *testing.T, script scripted.Script, o splitOptions) *splitFleet {
	t.Helper()
	f := &splitFleet{teamFleet: &teamFleet{fleet: newFleet(t, script)}, teams: map[id.Name]*process.Process{}}
	// Tests write faster than people: a message over the default rate would be refused.
	f.configure(o.Servers + "worker: {concurrency: 64}\ngateway:\n  message_rate: 1000\n  message_burst: 1000\n")
	if o.Queue > 0 { // continues with the section gateway
		f.configure(fmt.Sprintf("  queue_bytes: %d\n", o.Queue))
	}
	if o.Shared != "" {
		f.configure("access: {see: " + o.Shared + ", answer: " + o.Shared + "}\n")
	}
	f.serve("session,pipeline,task,tools")
	f.worker = f.serve("worker")
	for i := range f.addrs {
		f.gates[i], f.addrs[i] = f.gateway()
	}
	f.addr, f.nc = f.addrs[0], f.listen()
	conn, err := bus.Connect(t.Context(), bus.Config{URL: f.nats, Name: "test", Logger: zerolog.Nop()})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	f.dir, err = directory.Open(t.Context(), conn)
	require.NoError(t, err)
	t.Cleanup(f.dir.Close)
	for range o.Teams {
		f.startTeams()
	}
	return f
}

// startTeams starts a team service and returns when it is listed.
func (f *splitFleet) startTeams() {
	f.t.Helper()
	f.launchTeams()()
}

// launchTeams starts a team service; the returned function waits until it is listed.
func (f *splitFleet) launchTeams() (settled func()) {
	f.t.Helper()
	before := f.listed()
	p := f.serve("team")
	return func() {
		f.t.Helper()
		process.Eventually(f.t, "the team service is listed", func() bool {
			for _, instance := range f.listed() {
				if !slices.Contains(before, instance) {
					f.teams[instance] = p
					return true
				}
			}
			return false
		})
	}
}

func (f *splitFleet) listed() []id.Name {
	var out []id.Name
	for _, m := range f.dir.Members(directory.WhatService, cmd.Team) {
		out = append(out, m.Instance)
	}
	return out
}

// owner returns the team service that relays a team, of those that live.
func (f *splitFleet) owner(log subject.Log) id.Name {
	f.t.Helper()
	var living []directory.Member
	for instance := range f.teams {
		living = append(living, directory.Member{Instance: instance})
	}
	for instance := range f.teams {
		if command.Owns(subject.DefaultPartitions, instance, living, subject.Command{Service: cmd.Team, Tenant: log.Tenant, Key: log.Entity}) {
			return instance
		}
	}
	require.FailNow(f.t, "no replica owns the team")
	return id.Name{}
}

// kill ends a team service with SIGKILL.
func (f *splitFleet) kill(instance id.Name) {
	f.t.Helper()
	f.teams[instance].Kill()
	delete(f.teams, instance)
}

// killGateway replaces a gateway at its address.
func (f *splitFleet) killGateway(i int) {
	f.t.Helper()
	f.gates[i].Kill()
	f.gates[i] = f.serve("gateway", "--addr", f.addrs[i], "--telemetry-addr", f.telemetry[f.addrs[i]])
	f.gates[i].Ready(f.addrs[i])
}

func (f *splitFleet) killWorker() {
	f.t.Helper()
	f.worker.Kill()
	f.worker = f.serve("worker")
}

// message asks a member for something.
func (f *splitFleet) message(team, route, content string) {
	f.t.Helper()
	f.ask(http.MethodPost, "/api/v1/teams/"+team+"/messages", object{"content": content, "target": route}, http.StatusOK, nil)
}

// idle waits until a viewer of the team is told, later than since, that it is idle after so
// many runs have ended, and returns the team's log. No run ends twice.
func (f *splitFleet) idle(log subject.Log, tape *client.TeamRecorder, since time.Time, runs int) []verify.Stored {
	f.t.Helper()
	for seen := uint64(0); ; {
		seen = tape.Until("the team is idle", func(s client.Recorded) bool {
			return s.At.After(since) && s.Event() > seen && is("TEAM_STATUS", "", "new_status", event.TeamIdle)(s.Frame())
		}).Event()
		events := verify.ReadLog(f.t, f.nc, log)
		ends, before := 0, 0
		for _, e := range events {
			if bytes.Contains(e.Raw, []byte(`"run.`)) && event.Unwrap(e.Event).Type.Terminal() {
				if ends++; e.Sequence < seen {
					before++
				}
			}
		}
		require.LessOrEqual(f.t, ends, runs, "no run ends twice")
		if before == runs {
			return events
		}
	}
}

// faithful requires of a team's log that it holds every event of the logs of its members
// once, in the member's order and byte for byte, and so for every nested team. It returns
// the number of the agents' events, and adds every log to the map.
func (f *splitFleet) faithful(log subject.Log, logs map[subject.Log][]verify.Stored) (agents int) {
	f.t.Helper()
	got := map[subject.Log][]json.RawMessage{}
	for _, e := range verify.ReadLog(f.t, f.nc, log) {
		of, seq, raw := held(f.t, log, e.Event)
		if raw == nil {
			continue
		}
		require.EqualValues(f.t, len(got[of])+1, seq, "%s in %s at %d: lost, doubled or out of order", of, log, e.Sequence)
		got[of] = append(got[of], raw)
	}
	for of, raws := range got {
		own := verify.ReadLog(f.t, f.nc, of)
		logs[of] = own
		require.Equal(f.t, len(own), len(raws), "%s in %s", of, log)
		for i := range own {
			if string(own[i].Raw) != string(raws[i]) {
				require.Equal(f.t, string(own[i].Raw), string(raws[i]), "event %d of %s in %s", i+1, of, log)
			}
		}
		if of.Kind == id.KindTeam {
			agents += f.faithful(of, logs)
		} else {
			agents += len(own)
		}
	}
	return agents
}

// held returns which event of a member's log an event of a team's log holds; raw is nil
// if it is the team's own.
func held(t *testing.T, in subject.Log, e event.Event) (of subject.Log, seq uint64, raw json.RawMessage) {
	t.Helper()
	of = in
	switch e.Type {
	case event.TeamMemberEvent:
		d, err := event.As[event.TeamMemberEventData](e)
		require.NoError(t, err)
		of.Kind, of.Entity = id.KindMember, id.EntityFromExternal(d.MemberID)
		return of, d.Seq, d.Event
	case event.TeamSubTeamEvent:
		d, err := event.As[event.TeamSubTeamEventData](e)
		require.NoError(t, err)
		of.Entity = id.EntityFromExternal(d.SubTeamID)
		return of, d.Seq, d.SubTeamEvent
	}
	return of, 0, nil
}

// alike requires that the viewers have seen, up to the last status in the team's log, what
// one sees that comes now. It returns how many frames that are.
func (f *splitFleet) alike(log []verify.Stored, path string, tapes map[string]*client.TeamRecorder) (frames int) {
	f.t.Helper()
	end := uint64(0)
	for _, e := range log {
		if e.Type == event.TeamStatus {
			end = e.Sequence
		}
	}
	want := f.seen("a late viewer", client.RecordTeam(f.t, path, f.addrs[0]), end)
	for name, tape := range tapes {
		got := f.seen(name, tape, end)
		for i := range min(len(want), len(got)) {
			if want[i].Raw != got[i].Raw {
				require.Equal(f.t, want[i].Raw, got[i].Raw, "frame %d of %s", i, name)
			}
		}
		require.Equal(f.t, len(want), len(got), "frames of %s", name)
	}
	return len(want)
}

// seen returns what a viewer has been sent of the events up to end.
func (f *splitFleet) seen(name string, tape *client.TeamRecorder, end uint64) []client.Recorded {
	f.t.Helper()
	tape.UntilEvent(end)
	shots, _, faults := tape.Frames()
	require.Empty(f.t, faults, name)
	if i := slices.IndexFunc(shots, func(s client.Recorded) bool { return s.Event() > end }); i >= 0 {
		shots = shots[:i]
	}
	return shots
}
