package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// TestACallIsApprovedWithOtherArguments: in AG-UI, MyAgent and the API, a person approves the call of a tool with arguments of their
// own. Arguments that do not fit the tool's schema are refused with their place, and the question stays open.
func TestACallIsApprovedWithOtherArguments(t *testing.T) {
	t.Parallel()
	dir, addr := up(t, []string{"WAGGLE_TOOLS_BUILTIN_APPROVAL=writes"})
	for protocol, answers := range map[string]func(t *testing.T, addr, request string, wrong, right object){
		"agui": aguiEdits, "myagent": myagentEdits, "api": apiEdits,
	} {
		t.Run(protocol, func(t *testing.T) {
			asked, written := protocol+"-asked.txt", protocol+"-written.txt"
			answers(t, addr, "append `hello` to "+asked,
				object{"path": written, "content": 7}, object{"path": written, "content": "goodbye", "append": true})
			process.Eventually(t, "the file is written", func() bool {
				text, err := os.ReadFile(filepath.Join(dir, "workspace", written))
				return err == nil && string(text) == "goodbye"
			})
			require.NoFileExists(t, filepath.Join(dir, "workspace", asked))
		})
	}
}

func aguiEdits(t *testing.T, addr, request string, wrong, right object) {
	c := aguiClient{t: t, addr: addr}
	thread := newRun()
	open := interrupts(t, c.run(thread, newRun(), request, nil))
	require.Len(t, open, 1)
	require.Contains(t, string(open[0].ResponseSchema), `"editedArgs"`)
	status, problem := c.text(http.MethodPost, "", aguiInput(thread, newRun(), "", resumes(open[0].ID, object{"approved": true, "editedArgs": wrong})))
	require.Equal(t, http.StatusUnprocessableEntity, status, problem)
	require.Contains(t, problem, "/content")
	end := c.run(thread, newRun(), "", resumes(open[0].ID, object{"approved": true, "editedArgs": right}))
	require.Equal(t, wire.OutcomeSuccess, end[len(end)-1].Outcome.Type)
	var calls []wire.ToolCall
	for _, f := range end {
		for _, m := range f.Messages {
			calls = append(calls, m.ToolCalls...)
		}
	}
	require.Len(t, calls, 1, "viewers get all messages again")
	require.Contains(t, calls[0].Function.Arguments, "goodbye")
}

func myagentEdits(t *testing.T, addr, request string, wrong, right object) {
	m := client.DialMyAgent(t, addr)
	m.Create("en_US", nil)
	m.Message(request, nil)
	q := m.Until(myagent.AgentUserConfirm)
	require.Contains(t, string(q.Metadata), `"value":"modify"`)
	require.Contains(t, string(q.Metadata), `"tool_schema":{`)
	m.Send(myagent.UserResponse, object{"step_id": q.StepID, "content": object{"approved": true, "tool_args": wrong}})
	refused := string(m.Until(myagent.ErrorValidation).Raw)
	require.Contains(t, refused, "/content")
	require.Contains(t, refused, `"field":"content.tool_args"`)
	m.Send(myagent.UserResponse, object{"step_id": q.StepID, "content": object{"approved": true, "tool_args": right}})
	m.Until(myagent.AgentFinalAnswer)
}

func apiEdits(t *testing.T, addr, request string, wrong, right object) {
	p := place{addr: addr}
	var made struct {
		SessionID string `json:"session_id"`
	}
	answer := func(path string, body any) string {
		raw, err := json.Marshal(body)
		require.NoError(t, err)
		return post(t, p.url("/api/v1"+path), "", string(raw))
	}
	text := answer("/sessions", object{})
	require.NoError(t, json.Unmarshal([]byte(text[strings.Index(text, "{"):]), &made))
	answer("/sessions/"+made.SessionID+"/messages", object{"content": request})
	q := inList(t, p, "kind=session&log="+made.SessionID, 1)[0]
	require.Contains(t, string(q.Parameters), `"content"`)
	refused := answer("/questions/"+q.ID+"/answer", object{"decision": "modify", "arguments": wrong, "digest": q.Digest})
	require.Contains(t, refused, "422")
	require.Contains(t, refused, `"field":"arguments"`)
	var out api.QuestionOutcome
	taken := answer("/questions/"+q.ID+"/answer", object{"decision": "modify", "arguments": right, "digest": q.Digest})
	require.NoError(t, json.Unmarshal([]byte(taken[strings.Index(taken, "{"):]), &out), taken)
	require.Equal(t, "modify", out.Decision)
}
