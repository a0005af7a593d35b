package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// gets asks for a path and returns status and whole answer.
func (r *rig) gets(path string, header ...string) (int, string, http.Header) {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://"+r.addr+path, nil)
	require.NoError(r.t, err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 4 * maxWait}).Do(req)
	require.NoError(r.t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	require.NoError(r.t, err)
	return res.StatusCode, string(text), res.Header
}

// chunksIn are the ids and types of the chunks of a stream.
func chunksIn(text string) (out []string) {
	id := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if rest, is := strings.CutPrefix(line, "id: "); is {
			id = rest
		}
		data, is := strings.CutPrefix(line, "data: ")
		if !is {
			continue
		}
		_, kind, known := strings.Cut(data, `{"type":"`)
		if kind, _, _ = strings.Cut(kind, `"`); !known {
			kind = data
		}
		out, id = append(out, strings.TrimSpace(id+" "+kind)), ""
	}
	return out
}

// saying is a request with a message.
func saying(chat, message, text string) string {
	return fmt.Sprintf(`{"id":%q,"messages":[{"id":%q,"role":"user","parts":[{"type":"text","text":%q}]}]}`, chat, message, text)
}

// answered is a run that has an answer.
func answered() []event.Data {
	return []event.Data{
		event.MessageReceivedData{MessageID: "u1", RunID: "r1", Content: "hello"},
		event.RunStartedData{RunID: "r1", MessageID: "u1", Content: "hello"},
		event.MessageDeltaData{MessageID: "t1", RunID: "r1", Text: "so "},
		event.MessageDeltaData{MessageID: "t1", RunID: "r1", Text: "be it"},
		event.MessageCompletedData{MessageID: "t1", RunID: "r1", Content: "so be it", StopReason: event.StopEnd},
		event.RunCompletedData{RunID: "r1", MessageID: "t1", Content: "so be it"},
	}
}

// TestAChatIsResumed where its client stands: after any chunk comes exactly the rest, and a repeat shows the run again.
func TestAChatIsResumed(t *testing.T) {
	r := start(t)
	name, _ := r.thread(answered()...)
	status, text, head := r.demands("/ai/chat", saying(name, "u1", "hello"))
	require.Equal(t, http.StatusOK, status, text)
	require.Equal(t, "v1", head.Get("X-Vercel-Ai-Ui-Message-Stream"))
	require.Equal(t, []string{"start", "start-step", "text-start", "text-delta", "text-end", "finish-step", "7 finish", "[DONE]"}, chunksIn(text))
	require.Contains(t, text, `"delta":"so be it"`)
	whole := []string{"4.1 start-step", "4.2 text-start", "4 text-delta", "5 text-delta", "6 text-end", "7.1 finish-step", "7 finish", "7 [DONE]"}
	ids := []string{"3", "4.1", "4.2", "4", "5", "6", "7.1"}
	for i, id := range ids {
		status, text, _ = r.gets("/ai/chat/"+name+"/stream", "Last-Event-ID", id)
		require.Equal(t, http.StatusOK, status, text)
		require.Equal(t, whole[i:], chunksIn(text), id)
	}
	for id, want := range map[string]int{"": http.StatusNoContent, "7": http.StatusNoContent, "8": http.StatusBadRequest, "x": http.StatusBadRequest, "4.x": http.StatusBadRequest} {
		status, text, _ = r.gets("/ai/chat/"+name+"/stream", "Last-Event-ID", id)
		require.Equal(t, want, status, "%q: %s", id, text)
	}
	status, text, _ = r.gets("/ai/chat/" + name + "/messages")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, `{"type":"text","text":"so be it","state":"done"}`)
}

// TestAChatThatDoesNotExist has nothing to show, and a page may ask for it.
func TestAChatThatDoesNotExist(t *testing.T) {
	r := start(t)
	status, _, _ := r.gets("/ai/chat/" + unique() + "/stream")
	require.Equal(t, http.StatusNoContent, status)
	status, text, _ := r.gets("/ai/chat/" + unique() + "/messages")
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"messages":[],"more":false}`, text)
	status, text, _ = r.demands("/ai/chat/"+unique()+"/stop", `{}`)
	require.Equal(t, http.StatusNotFound, status, text)
}

// TestAChatWaitsForAnswers: its stream ends with the question, is shown again to a newcomer, and takes no other message.
func TestAChatWaitsForAnswers(t *testing.T) {
	r := start(t)
	asked := append(answered()[:2:2], event.InputRequestedData{InputID: "q1", RunID: "r1", Scope: event.ScopeTool, CallID: "c1", Tool: "write", Arguments: []byte(`{}`)},
		event.JobSuspendedData{RunID: "r1", Inputs: []string{"q1"}})
	name, l := r.thread(asked...)
	status, text, _ := r.gets("/ai/chat/" + name + "/stream")
	require.Equal(t, http.StatusOK, status)
	want := []string{"start", "tool-input-available", "tool-approval-request", "5 finish", "[DONE]"}
	require.Equal(t, want, chunksIn(text))
	status, text, _ = r.demands("/ai/chat", saying(name, "u2", "and?"))
	require.Equal(t, http.StatusConflict, status, text)
	require.Contains(t, text, "INPUT_REQUIRED")
	r.happens(l, event.InputAnsweredData{InputID: "q1", RunID: "r1", Decision: event.DecisionReject, CallID: "c1"}, event.RunCompletedData{RunID: "r1", Content: "no"})
	late := fmt.Sprintf(`{"id":%q,"messages":[{"id":"r1","role":"assistant","metadata":{"stretch":1},"parts":[
		{"type":"dynamic-tool","toolName":"write","toolCallId":"c1","state":"approval-responded","approval":{"id":"q1","approved":true}}]}]}`, name)
	status, text, _ = r.demands("/ai/chat", late)
	require.Equal(t, http.StatusOK, status, text)
	got := chunksIn(text)
	require.Equal(t, []string{"6.1 start", "6 tool-output-denied"}, got[:2], "the answer of another counts")
	require.Equal(t, "7 [DONE]", got[len(got)-1])
}

// TestRequestsOfChatsAreChecked: each refusal names its member.
func TestRequestsOfChatsAreChecked(t *testing.T) {
	r := start(t)
	part := func(p string) string { return `{"id":"c","messages":[{"id":"u","role":"user","parts":[` + p + `]}]}` }
	for body, field := range map[string]string{
		`{}`: "id", `{"id":"c"}`: "messages", `{"id":"c","messages":[{"role":"user"}]}`: "messages[0].id",
		`{"id":"c","messages":[{"id":"u","role":"tool"}]}`: "messages[0].role", part(`{"type":"text","text":" "}`): "messages[0].parts",
		part(`{"type":"file","mediaType":"image/png","url":"ftp://a"}`):                 "messages[0].parts[0].url",
		part(`{"type":"file","mediaType":"image/png","url":"data:image/png;base64,%"}`): "messages[0].parts[0].url",
		`{"id":"c","trigger":"x","messages":[{"id":"u","role":"user"}]}`:                "trigger",
		`{"id":"c","mode":"steps","messages":[{"id":"u","role":"user"}]}`:               "mode",
		`{"id":"c","tools":[{"name":"a b"}],"messages":[{"id":"u","role":"user"}]}`:     "tools[0].name",
		`{"id":"c","budget":{"tokens":-1},"messages":[{"id":"u","role":"user"}]}`:       "budget",
	} {
		status, text, _ := r.demands("/ai/chat", body)
		require.Equal(t, http.StatusUnprocessableEntity, status, "%s: %s", body, text)
		require.Contains(t, text, fmt.Sprintf("%q", field), body)
	}
}
