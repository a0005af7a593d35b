package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/verify"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// writingMembers stamp a paper if they are told so, and else write for two seconds.
func writingMembers() scripted.Script {
	stamp := stampingMembers()
	return func(x *scripted.Exchange) scripted.Reply {
		if last := x.Prompt.Messages[len(x.Prompt.Messages)-1]; last.Role == "tool" || strings.HasPrefix(last.Content, "stamp") {
			return stamp(x)
		}
		return scripted.Stream(scripted.Every(40*time.Millisecond, words(50)...))
	}
}

// faultRun is a team on which faults fall, with those who watch it.
type faultRun struct {
	*splitFleet
	id         string
	log        subject.Log
	tapes      map[string]*client.TeamRecorder
	main       *client.TeamRecorder
	teamClient *client.Team
	runs       int
	stamp      *stampTool
}

func newFaultRun(t *testing.T) *faultRun {
	t.Helper()
	stamp, server := serveStampTool(t)
	s := &faultRun{splitFleet: newSplitFleet(t, writingMembers(), splitOptions{Teams: 2, Servers: server}), stamp: stamp}
	s.id = s.found(agency).TeamID
	s.log = verify.LogOf(id.KindTeam, s.id)
	path := "agent-team/" + s.id
	s.main = client.RecordTeam(t, path, s.addrs[0], s.addrs[1])
	s.tapes = map[string]*client.TeamRecorder{"who comes back to another gateway": s.main, "who comes back to its own": client.RecordTeam(t, path, s.addrs[0])}
	var first uint64
	s.teamClient = client.WatchTeam(t, client.TeamOptions{Addr: s.addrs[1], Others: s.addrs[:1], Path: path, After: &first})
	return s
}

// during has a member write, and what befalls happen in the middle of it.
func (s *faultRun) during(what, route string, befalls func()) {
	s.t.Helper()
	began := time.Now()
	s.message(s.id, route, "write")
	s.main.Until("half a text", func(f client.Recorded) bool {
		return f.At.After(began) && strings.Contains(f.Raw, "word020") && is("SEGMENT_CONTENT", route)(f.Frame())
	})
	befalls()
	s.runs++
	s.idle(s.log, s.main, began, s.runs)
	s.t.Logf("%s: the run ended once, after %s", what, time.Since(began).Round(100*time.Millisecond))
}

// TestFaultsWhileATeamWorks: gateways, workers, team services and the NATS server go, while
// members write and while people are asked. Every run ends once, what was allowed runs
// once, and viewers are shown everything once and in order.
func TestFaultsWhileATeamWorks(t *testing.T) {
	t.Parallel()
	s := newFaultRun(t)
	s.during("a gateway is killed", "cellar/Clerk", func() { s.killGateway(0) })
	s.during("the NATS server is restarted", "Lead", s.restartBus)
	s.during("the worker is killed", "cellar/Clerk", s.killWorker)

	papers := map[string]string{"Lead": "one", "cellar/Clerk": "two"}
	questions := map[string]client.TeamFrame{}
	for route, paper := range papers {
		s.message(s.id, route, "stamp "+paper)
		questions[route] = s.teamClient.Until("the question", is("TOOL_APPROVAL_REQUESTED", route))
	}
	asked := time.Now()
	s.killGateway(1)
	s.killWorker()
	s.kill(s.owner(s.log))
	s.splitFleet.startTeams()
	s.restartBus()
	for route := range papers {
		s.teamClient.Say("APPROVE_TOOL", object{"invocation_id": questions[route].Text("invocation_id"), "approval_token": questions[route].Member("approval_token")})
		s.teamClient.Until("it is allowed", is("TOOL_APPROVED", route))
		s.runs++
	}
	events := s.idle(s.log, s.main, asked, s.runs)
	t.Logf("everything is killed while two calls wait: both ran and ended once, after %s", time.Since(asked).Round(100*time.Millisecond))
	for _, paper := range papers {
		require.Equal(t, 1, s.stamp.on(paper), paper)
	}
	s.judge(events)
}

// judge compares what is in the logs and what viewers were sent.
func (s *faultRun) judge(events []verify.Stored) {
	s.t.Helper()
	logs := map[subject.Log][]verify.Stored{}
	compared := s.faithful(s.log, logs)
	texts, started, breaks := 0, 0, 0
	for log, own := range logs {
		if log.Kind != id.KindMember {
			continue
		}
		for run, n := range terminals(s.t, eventsOf(own)) {
			require.Equal(s.t, 1, n, "terminal events of %s", run)
		}
		for _, d := range all[event.RunCompletedData](s.t, eventsOf(own)) {
			texts += strings.Count(d.Content, strings.Join(words(50), ""))
		}
		started += len(all[event.ToolStartedData](s.t, eventsOf(own)))
	}
	require.Equal(s.t, 3, texts, "every text is whole, and there once")
	require.Equal(s.t, 2, started)
	frames := s.alike(events, "agent-team/"+s.id, s.tapes)
	for _, tape := range s.tapes {
		_, n, _ := tape.Frames()
		breaks += n
	}
	_, wrong := s.teamClient.Losses()
	require.Empty(s.t, wrong)
	s.t.Logf("%d runs, each ended once; %d events of agents, exact; %d frames alike for all viewers, who came back %d times", s.runs, compared, frames, breaks)
}
