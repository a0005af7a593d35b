package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/proof"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// approvals are what every protocol is tried with: an appended line shows how often the tool ran.
var approvals = map[string]struct {
	approved bool
	lines    int
}{"approved": {true, 1}, "rejected": {false, 0}}

// TestEveryProtocolAsksForApprovals: where the operator has people asked, the user of each protocol sees the question about
// the tool call and answers it on its own socket. An approved call runs once, a rejected one never does.
func TestEveryProtocolAsksForApprovals(t *testing.T) {
	t.Parallel()
	dir, addr := up(t, []string{"WAGGLE_TOOLS_BUILTIN_APPROVAL=writes"})
	for protocol, asks := range map[string]func(t *testing.T, addr, request string, approved bool){
		"orbit": orbitApproval, "page": pageApproval, "myagent": myagentApproval, "asp": aspApproval, "team": teamApproval, "agui": aguiApproval,
	} {
		for answer, want := range approvals {
			name := protocol + "-" + answer + ".txt"
			t.Run(protocol+" "+answer, func(t *testing.T) {
				asks(t, addr, "append `hello` to "+name, want.approved)
				text, err := os.ReadFile(filepath.Join(dir, "workspace", name))
				if want.lines == 0 {
					require.ErrorIs(t, err, os.ErrNotExist)
					return
				}
				require.NoError(t, err)
				require.Equal(t, want.lines, strings.Count(string(text), "hello"))
			})
		}
	}
}

// orbitQuestion waits for a question about a tool and returns its id.
func orbitQuestion(t *testing.T, c *client.Orbit) string {
	t.Helper()
	for {
		f := c.Until("agent_thinking")
		var q struct {
			Data struct {
				Question struct {
					ID, Scope, Tool string
				}
			}
		}
		require.NoError(t, json.Unmarshal([]byte(f.Raw), &q))
		if q.Data.Question.ID != "" {
			require.Equal(t, []string{"tool", "workspace_write_file"}, []string{q.Data.Question.Scope, q.Data.Question.Tool})
			return q.Data.Question.ID
		}
	}
}

func answerOrbit(t *testing.T, c *client.Orbit, question string, approved bool) {
	t.Helper()
	raw, err := json.Marshal(object{"type": "answer", "question_id": question, "approved": approved})
	require.NoError(t, err)
	c.Send(string(raw))
}

// pageApproval: the page of the original shows answers only, and knows no frame but user_message.
func pageApproval(t *testing.T, addr, request string, approved bool) {
	c := client.DialOrbit(t, "ws://"+addr+"/ws")
	c.Ask(request)
	q := c.Until("agent_response")
	require.Contains(t, q.Raw, `"execution_completed":false`)
	require.Contains(t, q.Raw, "Answer yes or no.")
	said := map[bool]string{true: "yes", false: "no"}[approved]
	c.Ask(said)
	for c.Until("user_input").Data.Message != said { // the request has one, too
	}
	for !strings.Contains(c.Until("agent_response").Raw, `"execution_completed":true`) { // the run waits
	}
}

func orbitApproval(t *testing.T, addr, request string, approved bool) {
	c := client.DialOrbit(t, "ws://"+addr+"/ws?deltas=false")
	c.Ask(request)
	answerOrbit(t, c, orbitQuestion(t, c), approved)
	c.Until("agent_response")
}

func myagentApproval(t *testing.T, addr, request string, approved bool) {
	m := client.DialMyAgent(t, addr)
	m.Create("en_US", nil)
	m.Message(request, nil)
	q := m.Until(myagent.AgentUserConfirm)
	require.Contains(t, string(q.Metadata), `"scope":"tool"`)
	require.NotEmpty(t, q.StepID)
	m.Send(myagent.UserResponse, object{"step_id": q.StepID, "content": object{"approved": approved}})
	m.Until(myagent.AgentFinalAnswer)
}

func aguiApproval(t *testing.T, addr, request string, approved bool) {
	c := aguiClient{t: t, addr: addr}
	thread := newRun()
	open := interrupts(t, c.run(thread, newRun(), request, nil))
	require.Len(t, open, 1)
	require.Contains(t, fmt.Sprint(open[0].Metadata.Waggle), "workspace_write_file")
	end := c.run(thread, newRun(), "", answered(open, approved))
	require.Equal(t, wire.RunFinished, end[len(end)-1].Type)
	require.Equal(t, wire.OutcomeSuccess, end[len(end)-1].Outcome.Type)
}

// aspApproval: the assistant tells the client where its run waits, and the client answers there.
func aspApproval(t *testing.T, addr, request string, approved bool) {
	h := swarmRig{t: t, addr: addr}
	c := h.client()
	c.Say("client.agent.task.create.request", object{"agentName": "assistant", "taskData": object{"text": request}})
	note := c.Find("where to answer", func(f client.SwarmFrame) bool { return strings.Contains(string(f.Content), `"watch"`) })
	var at struct{ Watch, InputID string }
	require.NoError(t, json.Unmarshal(watchOf(t, note.Content), &at))
	w := client.DialSwarm(t, client.SwarmOptions{Role: proof.RoleClient, Addr: addr, Query: "watch=" + at.Watch})
	q := w.Until("task.requestmessage")
	decision := map[bool]string{true: "approve", false: "reject"}[approved]
	w.Say("task.message", object{"taskId": q.Text("taskId"), "message": decision, "messageType": "input_response"})
	c.Until("client.agent.task.result")
}

// watchOf returns the object with the member watch, wherever it is.
func watchOf(t *testing.T, raw json.RawMessage) json.RawMessage {
	t.Helper()
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	if m["watch"] != nil {
		return raw
	}
	for _, inner := range m {
		if found := watchOf(t, inner); found != nil {
			return found
		}
	}
	return nil
}

// teamApproval: the member's definition lets its tools run, which takes nothing back.
func teamApproval(t *testing.T, addr, request string, approved bool) {
	definition, err := json.Marshal(object{"name": "solo", "coordinator": "Coder", "members": []object{
		{"name": "Coder", "tools": []string{"workspace/*"}, "auto_execute_tools": true},
	}})
	require.NoError(t, err)
	var made struct {
		TeamID string `json:"team_id"`
	}
	answer := post(t, "http://"+addr+"/api/v1/teams", "", string(definition))
	require.NoError(t, json.Unmarshal([]byte(answer[strings.Index(answer, "{"):]), &made), answer)
	c := client.WatchTeam(t, client.TeamOptions{Addr: addr, Path: "agent-team/" + made.TeamID})
	c.Say("SEND_MESSAGE", object{"content": request})
	q := c.Until("the question", is("TOOL_APPROVAL_REQUESTED", "Coder"))
	kind := map[bool]string{true: "APPROVE_TOOL", false: "DENY_TOOL"}[approved]
	c.Say(kind, object{"invocation_id": q.Text("invocation_id"), "agent_name": "Coder"})
	process.Eventually(t, "the run has ended", func() bool {
		return strings.Contains(over(t, http.MethodGet, "http://"+addr+"/api/v1/teams/"+made.TeamID, ""), `"IDLE"`)
	})
}
