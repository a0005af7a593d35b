package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
)

// aguiFrame is one event of a stream of AG-UI.
type aguiFrame struct {
	id, data string
	Type     string
	RunID    string
	Name     string
	Delta    string
	Outcome  *wire.Outcome
	Messages []wire.Message
	Value    json.RawMessage
}

// aguiClient sends requests to a gateway.
type aguiClient struct {
	t    testing.TB
	addr string
	key  string // empty = without credentials
}

// aguiInput returns the body of a request for a run with a new message, empty text = none.
func aguiInput(thread, run, text string, change func(map[string]any)) []byte {
	in := map[string]any{
		"threadId": thread, "runId": run, "protocolVersion": "1.0", "messages": []any{}, "tools": []any{}, "context": []any{}, "state": nil,
	}
	if text != "" {
		in["messages"] = []any{map[string]any{"id": "user-" + run, "role": "user", "content": text}}
	}
	if change != nil {
		change(in)
	}
	raw, _ := json.Marshal(in)
	return raw
}

// request sends a request and returns the answer, whose body the caller closes.
func (c aguiClient) request(ctx context.Context, method, path string, body []byte, header ...string) *http.Response {
	c.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+c.addr+"/agui"+path, bytes.NewReader(body))
	require.NoError(c.t, err)
	r.Header.Set("Content-Type", "application/json")
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(c.t, err)
	return resp
}

// stream reads the frames of an answer until its end, or until more says that it has seen enough.
func (c aguiClient) stream(resp *http.Response, more func(aguiFrame) bool) (out []aguiFrame) {
	c.t.Helper()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		require.Equal(c.t, http.StatusOK, resp.StatusCode, "%s", text)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 4<<20)
	var f aguiFrame
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "id: "):
			f.id = line[4:]
		case strings.HasPrefix(line, "data: "):
			f.data = line[6:]
		case line == "" && f.data != "":
			require.NoError(c.t, json.Unmarshal([]byte(f.data), &f), "%s", f.data)
			out = append(out, f)
			if more != nil && !more(f) {
				return out
			}
			f = aguiFrame{}
		}
	}
	return out
}

// run posts a message and returns the whole stream.
func (c aguiClient) run(thread, run, text string, change func(map[string]any)) []aguiFrame {
	c.t.Helper()
	return c.runAt("", thread, run, text, change)
}

// runAt is run below a base.
func (c aguiClient) runAt(base, thread, run, text string, change func(map[string]any)) []aguiFrame {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.MaxWait)
	defer cancel()
	resp := c.request(ctx, http.MethodPost, base, aguiInput(thread, run, text, change))
	defer func() { _ = resp.Body.Close() }()
	return c.stream(resp, nil)
}

// get reads a stream of a thread until its end.
func (c aguiClient) get(path string, header ...string) []aguiFrame {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.MaxWait)
	defer cancel()
	resp := c.request(ctx, http.MethodGet, path, nil, header...)
	defer func() { _ = resp.Body.Close() }()
	return c.stream(resp, nil)
}

// text returns status and body of a request with a whole answer.
func (c aguiClient) text(method, path string, body []byte, header ...string) (int, string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.MaxWait)
	defer cancel()
	resp := c.request(ctx, method, path, body, header...)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(c.t, err)
	return resp.StatusCode, string(text)
}

// datas are the frames without their ids.
func datas(frames []aguiFrame) []string {
	out := make([]string, len(frames))
	for i, f := range frames {
		out[i] = f.data
	}
	return out
}

// interrupts are the questions that the last frame asks.
func interrupts(t testing.TB, frames []aguiFrame) []wire.Interrupt {
	t.Helper()
	require.NotEmpty(t, frames)
	last := frames[len(frames)-1]
	require.Equal(t, wire.RunFinished, last.Type, "%s", last.data)
	require.NotNil(t, last.Outcome)
	require.Equal(t, wire.OutcomeInterrupt, last.Outcome.Type, "%s", last.data)
	return last.Outcome.Interrupts
}

// answered adds answers to all questions to the body of a request.
func answered(open []wire.Interrupt, approved bool) func(map[string]any) {
	return func(in map[string]any) {
		var list []any
		for _, i := range open {
			list = append(list, map[string]any{"interruptId": i.ID, "status": "resolved", "payload": map[string]any{"approved": approved}})
		}
		in["resume"] = list
	}
}

// planned asks for a plan that people confirm.
func planned(in map[string]any) {
	in["forwardedProps"] = map[string]any{"waggle": map[string]any{"mode": "plan", "confirmPlan": true}}
}

func newRun() string { return uuid.NewString() }

// said is what the messages of a stream say, by their ids.
func said(frames []aguiFrame) map[string]string {
	out := map[string]string{}
	for _, f := range frames {
		var m struct {
			Type, MessageID, Delta string
			Messages               []wire.Message
		}
		_ = json.Unmarshal([]byte(f.data), &m)
		switch m.Type {
		case wire.TextMessageContent, wire.ReasoningMessageContent:
			out[m.MessageID] += m.Delta
		case wire.MessagesSnapshot:
			for _, one := range m.Messages {
				var s string
				if json.Unmarshal(one.Content, &s) == nil && (one.Role == wire.RoleAssistant || one.Role == wire.RoleReasoning) {
					out[one.ID] = s
				}
			}
		}
	}
	for id, text := range out {
		if text == "" {
			delete(out, id)
		}
	}
	return out
}

// speech is what the messages of a stream say together.
func speech(frames []aguiFrame) (text string) {
	for _, f := range frames {
		if f.Type == wire.TextMessageContent {
			text += f.Delta
		}
	}
	return text
}
