package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// driven is what testdata/agui/drive.mjs prints.
type driven struct {
	Client            string
	Frames            int
	Types             map[string]int
	Warnings, Invalid []string
	Flows             map[string]struct {
		Thread, Text string
		Frames       int
		Runs         []struct {
			RunID   string
			Events  int
			Outcome *wire.Outcome
			Failure *struct{ Code, Message string }
			Thrown  string
		}
	}
}

// toldBy returns the model's last question and whether it has results of tools since.
func toldBy(x *scripted.Exchange) (user string, results int) {
	for _, m := range x.Prompt.Messages {
		switch m.Role {
		case model.RoleUser:
			user, results = m.Content, 0
		case model.RoleTool:
			results++
		}
	}
	return user, results
}

// aguiFlows answers as the flows of testdata/agui/drive.mjs need it.
func aguiFlows() scripted.Script {
	var tries, files atomic.Int64
	write := func(x *scripted.Exchange) scripted.Reply {
		if _, results := toldBy(x); results > 0 {
			return say("It is written.")
		}
		n := files.Add(1)
		return scripted.Stream(scripted.Text("I write. "), scripted.Calls(0, scripted.Call{
			ID: fmt.Sprintf("write_%d", n), Name: "workspace_write_file", Arguments: fmt.Sprintf(`{"path":"file-%d.txt","content":"x"}`, n),
		}))
	}
	return scripted.Stages{
		Plan: func(x *scripted.Exchange) scripted.Reply {
			if strings.Contains(x.Data.Question, "write") {
				return scripted.Plan(tasks("w1", "w2")...)
			}
			return scripted.Plan(tasks("a", "b", "c")...)
		},
		Tasks: map[string]scripted.Script{
			"w1": write, "w2": write,
			"b": func(*scripted.Exchange) scripted.Reply { // every other try fails
				if tries.Add(1)%2 == 1 {
					return scripted.Fail(http.StatusBadRequest, "invalid_request_error", "no")
				}
				return say("b is done")
			},
		},
		Solve: scripted.Always(say("this is done")), Aggregate: scripted.Always(say("all is done")),
		Chat: func(x *scripted.Exchange) scripted.Reply {
			user, results := toldBy(x)
			user = user[strings.LastIndex(user, "\n\n")+1:] // earlier messages without an answer come first
			switch {
			case strings.Contains(user, "write"):
				return write(x)
			case strings.Contains(user, "where am I") && results == 0:
				return scripted.Stream(scripted.Text("Let me look. "), scripted.Calls(0, scripted.Call{ID: fmt.Sprintf("where_%d", files.Add(1)), Name: "where_am_i", Arguments: "{}"}))
			case strings.Contains(user, "where am I"):
				return say("You are in Bern.")
			case strings.Contains(user, "for ever"):
				return scripted.Stream(scripted.Text("I begin. "), scripted.Hang())
			case strings.Contains(user, "fail"):
				return scripted.Fail(http.StatusBadRequest, "invalid_request_error", "no")
			case strings.Contains(user, "read twice") && results < 2:
				return scripted.Stream(scripted.Calls(0, scripted.Call{ID: fmt.Sprintf("read_%d", files.Add(1)), Name: "workspace_read_file", Arguments: `{"path":"notes.md"}`}))
			}
			return say("hello to you")
		},
	}.Script()
}

// TestAGUIClientsOfOthers drives the clients that are published, unmodified, through every flow: the current one without one
// warning and with each frame valid, and at night two older ones, which most front ends still bring, without an error.
func TestAGUIClientsOfOthers(t *testing.T) {
	t.Parallel()
	dir := packages(t, "agui")
	f := newFleet(t, aguiFlows())
	f.env = []string{"WAGGLE_TOOLS_BUILTIN_APPROVAL=writes"}
	f.configure("gateway: {message_rate: 1000, message_burst: 1000}\npipeline: {retry_backoff: 20ms}\n")
	f.serve("session,pipeline,worker,tools")
	_, addr := f.gateway()
	for _, client := range published() {
		t.Run(client, func(t *testing.T) {
			complete(t, drive(t, dir, addr, client))
		})
	}
}

// published are the clients, the current one first.
func published() []string {
	return []string{"@ag-ui/client", "client-0.0.59", "client-0.0.57"}[:many(1, 3)]
}

// drive has a published client go through the flows at the gateway, and returns what it has seen.
func drive(t *testing.T, dir, addr, client string, more ...string) (d driven) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", append([]string{filepath.Join(dir, "drive.mjs"), "http://" + addr, client}, more...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", out)
	require.NoError(t, json.Unmarshal(out, &d), "%s", out)
	t.Logf("%s: %d frames in %d flows, %d invalid, %d warnings: %v", client, d.Frames, len(d.Flows), len(d.Invalid), len(d.Warnings), d.Types)
	return d
}

// complete checks what a client has seen of all flows.
func complete(t *testing.T, d driven) {
	t.Helper()
	require.Empty(t, d.Invalid)
	if d.Client == "@ag-ui/client" {
		require.Empty(t, d.Warnings)
	}
	older := d.Client != "@ag-ui/client"
	for flow, want := range map[string]struct {
		ends []string
		text string
	}{
		"chat":      {[]string{wire.OutcomeSuccess}, "hello to you"},
		"plan":      {[]string{wire.OutcomeInterrupt, wire.OutcomeSuccess}, "all is done"},
		"approval":  {[]string{wire.OutcomeInterrupt, wire.OutcomeSuccess}, "It is written."},
		"refusal":   {[]string{wire.OutcomeInterrupt, wire.OutcomeSuccess}, "It is written."},
		"approvals": {[]string{wire.OutcomeInterrupt, wire.OutcomeSuccess}, "all is done"},
		"tools":     {[]string{wire.OutcomeSuccess, wire.OutcomeSuccess}, "You are in Bern."},
		"cancel":    {[]string{wire.OutcomeCancelled}, ""},
		"failure":   {[]string{"failure", wire.OutcomeSuccess}, "hello to you"},
		"budget":    {[]string{wire.OutcomeInterrupt, wire.OutcomeSuccess}, "hello to you"},
	} {
		got := d.Flows[flow]
		require.Len(t, got.Runs, len(want.ends), "%s: %+v", flow, got)
		for i, run := range got.Runs {
			end := want.ends[i]
			if end == "failure" || older && end == wire.OutcomeCancelled {
				require.NotNil(t, run.Failure, "%s: %+v", flow, run)
				if end == wire.OutcomeCancelled {
					require.Equal(t, "RUN_CANCELLED", run.Failure.Code)
				}
				continue
			}
			require.Empty(t, run.Thrown, "%s, run %d", flow, i+1)
			require.Nil(t, run.Failure, "%s: %+v", flow, run.Failure)
			require.NotNil(t, run.Outcome, "%s, run %d", flow, i+1)
			require.Equal(t, end, run.Outcome.Type, "%s, run %d", flow, i+1)
		}
		require.Contains(t, got.Text, want.text, flow)
	}
	require.Len(t, d.Flows["approvals"].Runs[0].Outcome.Interrupts, 2, "both are asked at once")
	require.Equal(t, older, d.Types[wire.SubagentStarted] == 0)
}
