package waggle_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
	"github.com/waggle-dev/waggle/sdk/go/link"
	"github.com/waggle-dev/waggle/sdk/go/link/linktest"
	"github.com/waggle-dev/waggle/sdk/go/waggle"
	"github.com/waggle-dev/waggle/sdk/go/waggle/myagent/myagenttest"
)

func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func open(t testing.TB, url string) *waggle.Client {
	t.Helper()
	w, err := waggle.Open(t.Context(), url, waggle.Options{})
	require.NoError(t, err)
	return w
}

// ofRun is the metadata of frames of a run.
func ofRun(more map[string]any) map[string]any {
	m := map[string]any{"run_id": "r"}
	for k, v := range more {
		m[k] = v
	}
	return m
}

var tasks = []wire.Task{{ID: "a", Title: "Look"}, {ID: "b", Title: "Write", Dependencies: []string{"a"}}}

// planned plays a run whose plan is asked about, and returns what the client has answered.
func planned(p *myagenttest.Peer) json.RawMessage {
	p.Create()
	in := p.Read()
	p.Send(wire.Frame{Event: wire.UserMessage, Seq: 2, Content: "q?", Metadata: ofRun(map[string]any{"message_id": in.Metadata.MessageID})})
	p.Send(wire.Frame{Event: wire.PlanCompleted, Seq: 3, Content: wire.Tasks{Tasks: tasks}, Metadata: ofRun(nil)})
	question := "c"
	p.Send(wire.Frame{
		Event: wire.AgentUserConfirm, Seq: 4, StepID: &question, Content: "Well?",
		Metadata: ofRun(map[string]any{"scope": "plan", "tasks": tasks, "timeout_seconds": 300}),
	})
	answer := p.Read().Content
	p.Leave(1012)
	return answer
}

// solved plays the rest of it to the client that has come back.
func solved(p *myagenttest.Peer) {
	p.Read()
	p.Send(wire.Frame{Event: wire.SystemNotice, Seq: 5, Metadata: ofRun(map[string]any{
		"action": wire.ActionUserConfirm, "step_id": "c", "decision": "modify", "by": "alice",
	})})
	p.Replayed()
	p.Send(wire.Frame{Event: wire.SolverCompleted, Seq: 6, Content: map[string]any{"result": map[string]any{"output": "seen"}}, Metadata: ofRun(map[string]any{"task_id": "a"})})
	p.Send(wire.Frame{Event: wire.AgentPartialAnswer, Seq: 7, Content: "Fi", Metadata: ofRun(map[string]any{"stage": "aggregation", "message_id": "m"})})
	p.Send(wire.Frame{Event: wire.AgentFinalAnswer, Seq: 8, Content: "Fine", Metadata: ofRun(map[string]any{"status": "success", "total_tokens": 7})})
	p.Until()
}

func TestAPlanIsAskedAboutAndAnswered(t *testing.T) {
	decided := make(chan json.RawMessage, 1)
	url := myagenttest.Serve(t, func(p *myagenttest.Peer) { decided <- planned(p) }, solved)
	s := open(t, url).Plan(waggle.SessionOptions{})
	defer s.Close()
	answer, err := s.Ask(bounded(t), "q?", func(q waggle.Question) waggle.Reply {
		assert.Equal(t, "plan", q.Scope)
		assert.Equal(t, 5*time.Minute, q.Timeout)
		return waggle.Reply{Approve: true, Steps: q.Steps[:1]}
	})
	require.NoError(t, err)
	require.Equal(t, waggle.Answer{Text: "Fine", Status: "success", Tokens: 7}, answer)
	require.JSONEq(t, `{"confirmed":true,"tasks":[{"id":"a","title":"Look","dependencies":[]}]}`, string(<-decided))
	require.Equal(t, myagenttest.Session, s.ID())
	require.EqualValues(t, 8, s.Seq())
}

func TestEventsAreTyped(t *testing.T) {
	url := myagenttest.Serve(t, func(p *myagenttest.Peer) { planned(p) }, solved)
	s := open(t, url).Plan(waggle.SessionOptions{})
	defer s.Close()
	require.NoError(t, s.Send("q?"))
	var got []any
	for e, err := range s.Events(bounded(t)) {
		require.NoError(t, err)
		switch d := e.Data.(type) {
		case nil, waggle.Notice:
		case waggle.Lost:
			require.Error(t, d.Err)
			got = append(got, "lost")
		default:
			require.Equal(t, "r", e.Run)
			got = append(got, d)
		}
		if q, ok := e.Data.(waggle.Question); ok {
			require.NoError(t, s.Answer(q, waggle.Reply{Feedback: "no"}))
		}
		if _, ok := e.Data.(waggle.Answer); ok {
			break
		}
	}
	require.IsType(t, waggle.Accepted{}, got[0])
	require.Equal(t, "Look", got[1].(waggle.Plan).Steps[0].Title)
	require.IsType(t, waggle.Question{}, got[2])
	require.Equal(t, []any{
		"lost",
		waggle.Answered{Question: "c", Decision: "modify", By: "alice"},
		waggle.StepCompleted{StepID: "a", Output: "seen"},
		waggle.Delta{MessageID: "m", Text: "Fi", Answer: true},
		waggle.Answer{Text: "Fine", Status: "success", Tokens: 7},
	}, got[3:])
}

// chat plays the server's end of a chat.
func chat(t testing.TB, scripts ...func(c linktest.Conn)) string {
	return linktest.Serve(t, func(c linktest.Conn) linktest.Conn { return c }, scripts...)
}

func say(c linktest.Conn, frames ...string) {
	for _, f := range frames {
		_ = c.Write(c.Ctx, websocket.MessageText, []byte(f)) // a client that has left does not get it
	}
}

const ready = `{"type":"agent_ready","data":{"session_id":"s","last_seq":0}}`

func TestAChatComesBack(t *testing.T) {
	ids := make(chan string, 2)
	read := func(c linktest.Conn) {
		var in struct{ ID, Content string }
		_, b, err := c.Read(c.Ctx)
		assert.NoError(t, err)
		assert.NoError(t, json.Unmarshal(b, &in))
		ids <- in.ID
	}
	url := chat(t,
		func(c linktest.Conn) {
			say(c, ready)
			read(c)
			_ = c.Close(1012, "")
		},
		func(c linktest.Conn) {
			assert.Equal(t, "0", c.Request.URL.Query().Get("after"))
			assert.Equal(t, "s", c.Request.URL.Query().Get("session"))
			say(c, ready)
			read(c)
			say(c, `{"type":"user_input","seq":3,"execution_id":"e","data":{"message":"q?"}}`,
				`{"type":"agent_delta","seq":4,"execution_id":"e","data":{"message_id":"m","text":"Bu"}}`,
				`{"type":"agent_response","seq":5,"execution_id":"e","data":{"message":"Buzz"}}`)
			_, _, _ = c.Read(c.Ctx)
		})
	s := open(t, url).Chat(waggle.SessionOptions{})
	answer, err := s.Ask(bounded(t), "q?", nil)
	require.NoError(t, err)
	require.Equal(t, "Buzz", answer.Text)
	require.Equal(t, <-ids, <-ids, "the same message")
	require.ErrorIs(t, s.CancelPlan(""), waggle.ErrNoPlan)
	s.Close()
	_, err = s.Next(t.Context())
	require.ErrorIs(t, err, waggle.ErrClosed)
	require.ErrorIs(t, s.Cancel(""), link.ErrLost)
}

func TestErrorsAreTyped(t *testing.T) {
	url := chat(t, func(c linktest.Conn) {
		say(c, ready)
		_, _, _ = c.Read(c.Ctx)
		say(c, `{"type":"error","data":{"message":"Too many.","code":"QUEUE_FULL"}}`)
		_, _, _ = c.Read(c.Ctx)
	})
	s := open(t, url).Chat(waggle.SessionOptions{})
	defer s.Close()
	_, err := s.Ask(bounded(t), "q?", nil)
	require.True(t, waggle.IsCode(err, fault.QueueFull))
	require.EqualError(t, err, "Too many. [QUEUE_FULL]")

	gone := myagenttest.Serve(t, func(p *myagenttest.Peer) {
		p.Read()
		p.Send(wire.Frame{Event: wire.ErrorRecoveryFailed, Content: "no such session", Metadata: map[string]any{"error_code": "X", "error_type": "SESSION_EXPIRED"}})
		p.Until()
	})
	old := open(t, gone).Plan(waggle.SessionOptions{ID: myagenttest.Session, After: 7})
	defer old.Close()
	_, err = old.Next(bounded(t))
	require.EqualError(t, err, "no such session [SESSION_EXPIRED]")

	none := open(t, "ws://127.0.0.1:1").Chat(waggle.SessionOptions{})
	defer none.Close()
	_, err = none.Next(bounded(t))
	var dial *link.DialError
	require.ErrorAs(t, err, &dial)
}

func TestATeamIsWatchedAndDecidedOn(t *testing.T) {
	decided := make(chan string, 1)
	at := func(n, kind, payload string) string {
		return `{"type":"` + kind + `","payload":{` + payload + `,"team_stream_event_envelope":{"sequence":` + n + `}}}`
	}
	url := chat(t,
		func(c linktest.Conn) {
			assert.Equal(t, "/ws/agent-team/team_1", c.Request.URL.Path)
			say(c, `{"type":"CONNECTED","payload":{"team_id":"team_1"}}`)
			var in struct{ Payload map[string]string }
			_, b, _ := c.Read(c.Ctx)
			assert.NoError(t, json.Unmarshal(b, &in))
			assert.Equal(t, "go", in.Payload["content"])
			say(c, at("15", "MESSAGE_ACCEPTED", `"message_id":"`+in.Payload["message_id"]+`"`),
				at("31", "TOOL_APPROVAL_REQUESTED", `"invocation_id":"c1","tool_name":"rm","member_route_key":"library/Reader"`))
			_, b, _ = c.Read(c.Ctx)
			decided <- string(b)
			_ = c.Close(1012, "")
		},
		func(c linktest.Conn) {
			assert.Equal(t, "31", c.Request.URL.Query().Get("after"))
			say(c, `{"type":"CONNECTED","payload":{"team_id":"team_1"}}`, at("31", "TOOL_APPROVAL_REQUESTED", `"invocation_id":"c1"`),
				at("47", "TOOL_DENIED", `"invocation_id":"c1"`), at("63", "TEAM_STATUS", `"new_status":"IDLE"`))
			_, _, _ = c.Read(c.Ctx)
		})
	team := open(t, url).Team("team_1", waggle.TeamOptions{All: true})
	defer team.Close()
	id, err := team.Send("go", "")
	require.NoError(t, err)
	var types []string
	for len(types) == 0 || types[len(types)-1] != "TEAM_STATUS" {
		f, err := team.Next(bounded(t))
		require.NoError(t, err)
		if f.Type != "CONNECTED" {
			types = append(types, f.Type)
		}
		switch f.Type {
		case "MESSAGE_ACCEPTED":
			require.Equal(t, id, f.Payload.MessageID)
		case "TOOL_APPROVAL_REQUESTED":
			require.NoError(t, team.Decide(f, false, "not that file"))
		}
	}
	require.Equal(t, []string{"MESSAGE_ACCEPTED", "TOOL_APPROVAL_REQUESTED", "TOOL_DENIED", "TEAM_STATUS"}, types)
	require.Contains(t, <-decided, `"reason":"not that file"`)
}

// TestTheProgramOfTheReadme: the page shows lines of the example, which e2e runs.
func TestTheProgramOfTheReadme(t *testing.T) {
	page, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, code, ok := strings.Cut(string(page), "```go\n")
	require.True(t, ok)
	code, _, _ = strings.Cut(code, "```")
	source, err := os.ReadFile("../examples/planner/main.go")
	require.NoError(t, err)
	require.Contains(t, string(source), code)
}
