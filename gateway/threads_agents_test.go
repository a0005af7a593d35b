package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/rpc"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// withAgents has the swarm list agents: some with a name that begins like that of another, and four with one name.
func withAgents(s *swarm) {
	for i := range 4 {
		s.tasks.agents = append(s.tasks.agents, wirecmd.Participant{ID: fmt.Sprintf("w%d", i), Name: "Weld-o-mat", Description: fmt.Sprintf("welder %d", i), Online: i == 3})
	}
	for _, name := range []string{"Weld-o-mat 2", "Away"} {
		s.tasks.agents = append(s.tasks.agents, wirecmd.Participant{ID: name, Name: name})
	}
	slices.SortFunc(s.tasks.agents, func(a, b wirecmd.Participant) int { return strings.Compare(a.Name+"\x00"+a.ID, b.Name+"\x00"+b.ID) })
}

// TestMessagesToAnAgentOfTheSwarm: the base of an agent says who answers, and nothing else about a thread.
func TestMessagesToAnAgentOfTheSwarm(t *testing.T) {
	s := startSwarm(t)
	withAgents(s)
	name, l := s.thread()
	sent := make(chan wirecmd.UserMessage, 1)
	go func() {
		c := s.nextCommand(l.Entity.String())
		var m wirecmd.UserMessage
		_ = c.Decode(&m)
		sent <- m
		for _, d := range append(running("one"), event.RunCompletedData{RunID: "w-one", Content: "welded"}) {
			_ = s.append(l, unique(), d)
		}
	}()
	body := strings.TrimSuffix(ask(name, "one"), "}") + `,"state":{"step":1},"context":[{"description":"metal","value":"steel"}],"tools":[{"name":"paint","description":""}]}`
	status, text, head := s.demands("/agui/agents/Weld-o-mat", body)
	require.Equal(t, http.StatusOK, status, text)
	require.Equal(t, name, head.Get("X-Waggle-Thread"))
	require.Equal(t, []string{"RUN_STARTED one", "CUSTOM waggle.notice", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED one"}, framesIn(text))
	require.Contains(t, text, `"part":"tools"`)
	m := <-sent
	require.Equal(t, "Weld-o-mat", m.Agent)
	require.Empty(t, m.ClientTools)
	require.Equal(t, []event.Fact{{Description: "metal", Value: "steel"}}, m.Facts)
	var extra struct {
		AGUI struct{ State json.RawMessage } `json:"agui"`
	}
	require.NoError(t, json.Unmarshal(m.Extra, &extra))
	require.JSONEq(t, `{"step":1}`, string(extra.AGUI.State))

	for _, base := range []string{"/agui", "/agui/agents/Weld-o-mat", "/agui/agents/gone"} {
		status, text, _ = s.get(base + "/threads/" + name + "/messages")
		require.Equal(t, http.StatusOK, status, text)
		require.Contains(t, text, "welded")
		for _, path := range []string{"", "/runs/one"} {
			_, text, _ = s.get(base + "/threads/" + name + path)
			require.Equal(t, "RUN_FINISHED one", framesIn(text)[len(framesIn(text))-1], base)
		}
		status, text, _ = s.demands(base+"/threads/"+name+"/cancel", `{}`)
		require.Equal(t, http.StatusConflict, status, text)
		status, text, _ = s.demands(base+"/threads/"+name+"/answers", `{"resume":[{"interruptId":"x","status":"cancelled"}]}`)
		require.Equal(t, http.StatusUnprocessableEntity, status, text)
	}
	status, text, _ = s.demands("/agui/agents/gone", ask(name, "one"))
	require.Equal(t, http.StatusOK, status, "a repeat needs no agent: %s", text)
}

// TestAnUnknownAgent is told before anything is sent. One that is away is known.
func TestAnUnknownAgent(t *testing.T) {
	s := startSwarm(t)
	withAgents(s)
	name := unique()
	l := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal(name)}
	for _, agent := range []string{"Weld", "weld-o-mat", "nobody", "zzz"} {
		status, text, _ := s.demands("/agui/agents/"+agent, ask(name, "one"))
		require.Equal(t, http.StatusNotFound, status, text)
		require.Contains(t, text, "AGENT_NOT_FOUND")
		status, text, _ = s.get("/agui/agents/" + agent + "/capabilities")
		require.Equal(t, http.StatusNotFound, status, text)
	}
	require.Empty(t, s.inbox(l.Entity.String()), "no session is opened for it")
	status, text, _ := s.demands("/agui/agents/Away", strings.TrimSuffix(ask(name, "one"), "}")+`,"forwardedProps":{"waggle":{"mode":"plan"}}}`)
	require.Equal(t, http.StatusUnprocessableEntity, status, text)
	for agent, about := range map[string]string{"Weld-o-mat": "welder 3", "Away": "", "Weld-o-mat%202": ""} {
		status, text, _ = s.get("/agui/agents/" + agent + "/capabilities")
		require.Equal(t, http.StatusOK, status, text)
		var can wire.Capabilities
		require.NoError(t, json.Unmarshal([]byte(text), &can))
		require.Equal(t, strings.ReplaceAll(agent, "%20", " "), can.Identity.Name)
		require.Equal(t, about, can.Identity.Description, "of several, the one that is online")
		require.True(t, can.Transport.Streaming && can.Transport.Resumable)
		require.False(t, can.Tools.ClientProvided || can.HumanInTheLoop.Approvals)
		require.True(t, can.HumanInTheLoop.Interrupts, "it may ask people")
	}
}

// TestCapabilitiesNameToolsAndAgents: all tools that the model is offered, page by page, and each agent of the swarm once.
func TestCapabilitiesNameToolsAndAgents(t *testing.T) {
	s := startSwarm(t)
	withAgents(s)
	can := s.can()
	require.Empty(t, can.Tools.Items, "no tool service runs")
	require.Equal(t, []wire.SubagentInfo{{Name: "Away"}, {Name: "Weld-o-mat", Description: "welder 0"}, {Name: "Weld-o-mat 2"}}, can.MultiAgent.Subagents)

	var all []wirecmd.OfferedTool
	for i := range 7 {
		all = append(all, wirecmd.OfferedTool{Name: fmt.Sprintf("t%d", i), Description: "does it", InputSchema: json.RawMessage(`{"type":"object"}`)})
	}
	srv := rpc.NewServer(sharedBus(t), rpc.Config{Service: wirecmd.Tools, Logger: zerolog.Nop()})
	rpc.Handle(srv, wirecmd.OfferTools, func(_ context.Context, in wirecmd.ToolOfferRequest) (out wirecmd.ToolOffer, err error) {
		for _, one := range all {
			if one.Name > in.After && in.Tenant == id.DefaultTenant {
				if out.More = len(out.Tools) == 3; out.More {
					return out, nil
				}
				out.Tools = append(out.Tools, one)
			}
		}
		return out, nil
	})
	require.NoError(t, srv.Start(t.Context()))
	lease, err := s.dir.Join(t.Context(), directory.Member{What: directory.WhatService, Name: wirecmd.Tools, Instance: id.MustName(unique())})
	require.NoError(t, err)
	t.Cleanup(func() { _ = lease.Leave(context.Background()) })
	can = s.can()
	require.True(t, can.Tools.Supported && can.Tools.ClientProvided && can.Tools.ParallelCalls)
	require.Len(t, can.Tools.Items, 7)
	require.Equal(t, wire.Tool{Name: "t6", Description: "does it", Parameters: json.RawMessage(`{"type":"object"}`)}, can.Tools.Items[6])

	srv.Stop()
	status, text, _ := s.get("/agui/capabilities")
	require.Equal(t, http.StatusServiceUnavailable, status, "what is not known is not said: %s", text)
}

// can returns the capabilities of threads of the model.
func (r *rig) can() (out wire.Capabilities) {
	r.t.Helper()
	status, text, _ := r.get("/agui/capabilities")
	require.Equal(r.t, http.StatusOK, status, text)
	require.NoError(r.t, json.Unmarshal([]byte(text), &out))
	return out
}

// TestARefusedAnswerShowsTheQuestionAsOver: the task of an agent refuses an answer before the log of the session knows that another
// one counts, or that the run is over. The stream waits for the log, and does not ask again what cannot be answered any more.
func TestARefusedAnswerShowsTheQuestionAsOver(t *testing.T) {
	r := start(t)
	answered := event.InputAnsweredData{InputID: "q", RunID: "w-one", Scope: event.ScopeAgent, CommandID: "bob's", Decision: event.DecisionAnswer, Message: json.RawMessage(`"red"`)}
	for name, c := range map[string]struct {
		scope, code, shows string
		later              []event.Data
	}{
		"another answer counts": {event.ScopeAgent, "INPUT_ANSWERED", "painted", []event.Data{answered, event.RunCompletedData{RunID: "w-one", Content: "painted"}}},
		"the run is cancelled":  {event.ScopeAgent, "INPUT_NOT_FOUND", `"outcome":{"type":"cancelled"}`, []event.Data{event.RunCancelledData{RunID: "w-one", Reason: "user_request"}}},
		"another asker":         {event.ScopeTool, "INPUT_NOT_FOUND", `"outcome":{"type":"interrupt"`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			thread, l := r.thread(running("one")...)
			r.happens(l,
				event.InputRequestedData{InputID: "q", RunID: "w-one", Scope: c.scope, Summary: "Which colour?"},
				event.JobSuspendedData{RunID: "w-one", Inputs: []string{"q"}})
			other := make(chan struct{})
			go func() {
				defer close(other)
				sent := r.nextCommand(l.Entity.String())
				r.confirmed(sent.ReplyTo, l, event.CommandRefusedData{CommandID: sent.ID, Code: c.code, Message: "bob was faster"})
				for _, d := range c.later {
					assert.NoError(t, r.append(l, unique(), d))
				}
			}()
			payload := `{"answer":"blue"}`
			if c.scope == event.ScopeTool {
				payload = "true"
			}
			status, text, _ := r.demands("/agui", fmt.Sprintf(`{"threadId":%q,"runId":"mine","messages":[],"protocolVersion":"1.0","resume":[{"interruptId":"q","status":"resolved","payload":%s}]}`, thread, payload))
			<-other
			require.Equal(t, http.StatusOK, status, text)
			require.Contains(t, text, "bob was faster")
			require.Contains(t, text, c.shows)
			require.Equal(t, c.later == nil, strings.Contains(text, `"outcome":{"type":"interrupt"`))
			frames := framesIn(text)
			require.Equal(t, []string{"RUN_STARTED mine", "RUN_FINISHED mine"}, []string{frames[0], frames[len(frames)-1]}, "the run has the name that the client gave it")
		})
	}
}
