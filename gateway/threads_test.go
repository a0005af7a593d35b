package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/gateway/admission"
	"github.com/waggle-dev/waggle/gateway/agui/fold"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// demands sends a body and returns status, whole answer and header.
func (r *rig) demands(path, body string, header ...string) (int, string, http.Header) {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodPost, "http://"+r.addr+path, strings.NewReader(body))
	require.NoError(r.t, err)
	req.Header.Set("Content-Type", "application/json")
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

// ask is a request for a run with a message.
func ask(thread, run string) string {
	return fmt.Sprintf(`{"threadId":%q,"runId":%q,"protocolVersion":"1.0","messages":[{"id":"u-%s","role":"user","content":"hello"}]}`, thread, run, run)
}

// thread makes a thread with the events.
func (r *rig) thread(data ...event.Data) (name string, l subject.Log) {
	r.t.Helper()
	name = unique()
	l = subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal(name)}
	r.happens(l, append([]event.Data{event.SessionCreatedData{Dialect: "agui"}}, data...)...)
	return name, l
}

func (r *rig) happens(l subject.Log, data ...event.Data) {
	r.t.Helper()
	for _, d := range data {
		require.NoError(r.t, r.append(l, unique(), d))
	}
}

// running is the beginning of a run.
func running(run string) []event.Data {
	return []event.Data{
		event.MessageReceivedData{MessageID: fold.CommandID(run), RunID: "w-" + run, Content: "do " + run, RunSpec: extraOf(run)},
		event.RunStartedData{RunID: "w-" + run, MessageID: fold.CommandID(run), Content: "do " + run},
	}
}

func extraOf(run string) event.RunSpec {
	return event.RunSpec{Extra: fmt.Appendf(nil, `{"agui":{"run_id":%q,"message_id":"u-%s"}}`, run, run)}
}

// framesIn are the types of the frames of a stream, with the ids of the runs at their boundaries.
func framesIn(text string) (out []string) {
	for line := range strings.Lines(text) {
		data, is := strings.CutPrefix(line, "data: ")
		if !is {
			continue
		}
		of := func(member string) string {
			_, rest, _ := strings.Cut(data, `"`+member+`":"`)
			value, _, _ := strings.Cut(rest, `"`)
			return value
		}
		kind := of("type")
		switch {
		case kind == "CUSTOM":
			kind += " " + of("name")
		case strings.HasPrefix(kind, "RUN_"):
			_, data, _ = strings.Cut(data, `"threadId"`)
			kind += " " + of("runId")
		}
		out = append(out, kind)
	}
	return out
}

// frames is framesIn of one message.
func (m happening) frames() []string { return framesIn("data: " + m.data + "\n") }

// TestRequestsForRunsWaitForTheService: as long as they have to, however soon a body has to be there.
func TestRequestsForRunsWaitForTheService(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *gateway.Config, _ *gateway.Deps) {
		c.MessageTimeout, c.ReadyTimeout = 2*time.Second, 3*time.Second
	})
	name, _ := r.thread()
	status, text, head := r.demands("/agui", ask(name, "one"))
	require.Equal(t, http.StatusServiceUnavailable, status, text)
	require.NotEmpty(t, head.Get("Retry-After"))
	name, l := r.thread(running("one")...)
	r.happens(l, event.InputRequestedData{InputID: "q", RunID: "w-one", Scope: event.ScopeTool, CallID: "c", Tool: "write", Digest: "d"})
	status, text, head = r.demands("/agui/threads/"+name+"/answers", `{"resume":[{"interruptId":"q","status":"resolved","payload":true}]}`)
	require.Equal(t, http.StatusServiceUnavailable, status, text)
	require.NotEmpty(t, head.Get("Retry-After"))
	require.Equal(t, name, head.Get("X-Waggle-Thread"))
}

// TestAnswersToNothing: the thread is shown with a remark, and nothing waits.
func TestAnswersToNothing(t *testing.T) {
	r := start(t)
	name, _ := r.thread()
	for _, thread := range []string{unique(), name} {
		status, text, _ := r.demands("/agui", fmt.Sprintf(`{"threadId":%q,"runId":"one","messages":[],"protocolVersion":"1.0","resume":[{"interruptId":"x","status":"cancelled"}]}`, thread))
		require.Equal(t, http.StatusOK, status, text)
		require.Equal(t, []string{"RUN_STARTED one", "CUSTOM waggle.notice", "MESSAGES_SNAPSHOT", "RUN_FINISHED one"}, framesIn(text))
		require.NotContains(t, text, `"timestamp":-`)
	}
}

// TestARefusedRunIsRefusedAgain, with the same answer.
func TestARefusedRunIsRefusedAgain(t *testing.T) {
	r := start(t)
	name, l := r.thread()
	r.happens(l, event.MessageRefusedData{MessageID: fold.CommandID("one"), Code: "SESSION_BUSY", Message: "Not now."})
	for range 2 {
		status, text, _ := r.demands("/agui", ask(name, "one"))
		require.Equal(t, http.StatusConflict, status, text)
		require.Contains(t, text, "Not now.")
	}
}

// TestARunThatWasCancelledInTheQueue is shown as what it was, and not as the run before it.
func TestARunThatWasCancelledInTheQueue(t *testing.T) {
	r := start(t)
	name, l := r.thread(running("one")...)
	second := running("two")[0].(event.MessageReceivedData)
	second.Queued = 1
	r.happens(l, second, event.RunCancelledData{RunID: "w-two", Reason: "user_request"}, event.RunCompletedData{RunID: "w-one", Content: "done"})
	want := []string{"RUN_STARTED two", "CUSTOM waggle.queued", "RUN_FINISHED two"}
	status, text, head := r.get("/agui/threads/" + name + "/runs/two")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, want, framesIn(text))
	require.Equal(t, name, head.Get("X-Waggle-Thread"))
	_, text, _ = r.demands("/agui", ask(name, "two"))
	require.Equal(t, want, framesIn(text))
	_, text, _ = r.get("/agui/threads/" + name + "/runs/one")
	require.Equal(t, []string{"RUN_STARTED one", "MESSAGES_SNAPSHOT", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED one"}, framesIn(text))
}

// TestAStretchOfOneEvent has frames of its own.
func TestAStretchOfOneEvent(t *testing.T) {
	r := start(t)
	name, l := r.thread(running("one")...)
	r.happens(l,
		event.InputRequestedData{InputID: "q", RunID: "w-one", Scope: event.ScopeTool, CallID: "c", Tool: "write", Digest: "d"},
		event.JobSuspendedData{RunID: "w-one", Inputs: []string{"q"}},
		event.RunCancelledData{RunID: "w-one", Reason: "user_request"})
	status, text, _ := r.get("/agui/threads/" + name + "/runs/one~2")
	require.Equal(t, http.StatusOK, status, text)
	got := framesIn(text)
	require.Equal(t, "RUN_STARTED one~2", got[0], text)
	require.Equal(t, "RUN_FINISHED one~2", got[len(got)-1])
	require.Contains(t, text, `"outcome":{"type":"cancelled"}`)
}

// TestNothingFollows: who has everything of a thread with nothing on, or of a run that has ended, is told at once.
func TestNothingFollows(t *testing.T) {
	r := start(t)
	name, l := r.thread(running("one")...)
	r.happens(l, event.RunCompletedData{RunID: "w-one", Content: "done"}, event.NoticeData{Code: "X", Message: "later"})
	for _, path := range []string{"/agui/threads/" + name, "/agui/threads/" + name + "/runs/one"} {
		for _, at := range []string{"4", "5"} {
			status, text, _ := r.get(path, "Last-Event-ID", at)
			require.Equal(t, http.StatusNoContent, status, "%s %s: %s", path, at, text)
		}
		status, text, _ := r.get(path, "Last-Event-ID", "99")
		require.Equal(t, http.StatusBadRequest, status, text)
	}
	status, text, _ := r.get("/agui/threads/"+name, "Last-Event-ID", "3")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "RUN_FINISHED one", framesIn(text)[3])
	status, _, _ = r.get("/agui/threads/"+name+"/runs/none", "Last-Event-ID", "3")
	require.Equal(t, http.StatusNotFound, status)
	r.happens(l, event.SessionClosedData{})
	status, _, _ = r.get("/agui/threads/"+name+"?follow=1", "Last-Event-ID", "6")
	require.Equal(t, http.StatusNoContent, status, "a closed session has no later runs")
}

// TestAnExpiredPositionSaysWhereTheRestBegins.
func TestAnExpiredPositionSaysWhereTheRestBegins(t *testing.T) {
	r := start(t)
	name, l := r.thread(running("one")...)
	r.happens(l, event.RunCompletedData{RunID: "w-one", Content: "done"})
	r.happens(l, running("two")...)
	r.expire(l, 2)
	status, text, _ := r.get("/agui/threads/"+name, "Last-Event-ID", "2")
	require.Equal(t, http.StatusGone, status, text)
	require.Contains(t, text, `"first":5`)
}

// TestWhoAsksForNothingSeesTheActiveRun under the id of its own request.
func TestWhoAsksForNothingSeesTheActiveRun(t *testing.T) {
	r := start(t)
	name, l := r.thread(running("one")...)
	body := fmt.Sprintf(`{"threadId":%q,"runId":"mine","messages":[],"protocolVersion":"1.0"}`, name)
	res, err := http.Post("http://"+r.addr+"/agui", "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	require.Equal(t, http.StatusOK, res.StatusCode)
	r.happens(l, event.RunCompletedData{RunID: "w-one", Content: "done"})
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	got := framesIn(string(text))
	require.Equal(t, "RUN_STARTED mine", got[0])
	require.Equal(t, "RUN_FINISHED mine", got[len(got)-1])
}

// TestStreamsOfThreadsHaveNothingButFrames: one whose credentials end says so in a comment.
func TestStreamsOfThreadsHaveNothingButFrames(t *testing.T) {
	short := key("alice", "default")
	short.Expires = time.Now().Add(time.Hour)
	var cl clock
	r := start(t, authenticated(short), func(_ *gateway.Config, d *gateway.Deps) { d.Clock = cl.now })
	name, _ := r.thread(running("one")...)
	s := r.reads("/agui/threads/"+name, bearer("alice")...)
	m := s.must()
	require.Equal(t, []string{"RUN_STARTED one"}, m.frames())
	cl.advance(time.Hour)
	for err := error(nil); err == nil; m, err = s.next() {
		require.Empty(t, m.event)
	}
	require.NotEmpty(t, s.comments)
	require.Equal(t, "waggle CREDENTIALS_EXPIRED", s.comments[len(s.comments)-1])
}

// TestAllMessagesCanBeRead, also those that no snapshot has.
func TestAllMessagesCanBeRead(t *testing.T) {
	r := start(t)
	long := strings.Repeat("x", 150<<10)
	name, l := r.thread()
	for i := range 20 {
		run := fmt.Sprintf("r%d", i)
		d := running(run)[0].(event.MessageReceivedData)
		d.Content = long
		r.happens(l, d, event.RunStartedData{RunID: d.RunID, MessageID: d.MessageID}, event.RunCancelledData{RunID: d.RunID})
	}
	_, text, _ := r.get("/agui/threads/" + name)
	require.Contains(t, text, "waggle.history")
	var seen []string
	for before, more := "", true; more; {
		_, text, _ := r.get("/agui/threads/" + name + "/messages?limit=3&before=" + before)
		for i := range 20 {
			if name := fmt.Sprintf("u-r%d", i); strings.Contains(text, `"id":"`+name+`"`) {
				seen = append(seen, name)
			}
		}
		_, rest, found := strings.Cut(text, `"before":"`)
		before, _, _ = strings.Cut(rest, `"`)
		more = found
	}
	require.Len(t, seen, 20)
	status, _, _ := r.get("/agui/threads/" + name + "/messages?before=none")
	require.Equal(t, http.StatusBadRequest, status)
}

// TestRequestsForRunsBelongToTheTraceOfTheirClient.
func TestRequestsForRunsBelongToTheTraceOfTheirClient(t *testing.T) {
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	r := start(t, func(c *gateway.Config, _ *gateway.Deps) { c.ReadyTimeout = 300 * time.Millisecond })
	name, l := r.thread()
	status, _, _ := r.demands("/agui", ask(name, "one"), "traceparent", "00-"+trace+"-00f067aa0ba902b7-01")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, r.nextCommand(l.Entity.String()).TraceParent, trace)
}

// TestOldStreamsEnd cleanly, and their clients come back where they were.
func TestOldStreamsEnd(t *testing.T) {
	var cl clock
	r := start(t, func(c *gateway.Config, d *gateway.Deps) {
		c.StreamMaxAge, d.Clock = time.Hour, cl.now
	})
	name, l := r.thread(running("one")...)
	s := r.reads("/agui/threads/" + name)
	require.Equal(t, []string{"RUN_STARTED one", "MESSAGES_SNAPSHOT"}, append(s.must().frames(), s.must().frames()...))
	cl.advance(time.Hour)
	last, comment := s.ends()
	require.Zero(t, last)
	require.Equal(t, "waggle DRAINING", comment)
	r.happens(l, event.RunCompletedData{RunID: "w-one", Content: "done"})
	_, text, _ := r.get("/agui/threads/"+name, "Last-Event-ID", "3")
	require.Equal(t, []string{"TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED one"}, framesIn(text))
	require.EqualValues(t, 1, r.metric("waggle_gateway_resumes_total", "kind", "warm"))
	require.EqualValues(t, 1, r.metric("waggle_gateway_resumes_total", "kind", "cold"))
}

// TestResumingALongLog: from any place of a long log, what follows is what followed: pieces of text may come joined.
func TestResumingALongLog(t *testing.T) {
	r := start(t)
	name, l := r.thread(running("one")...)
	require.NoError(t, r.append(l, unique(), event.MessageStartedData{MessageID: "m", RunID: "w-one", Attempt: 1}))
	for i := range 2300 {
		require.NoError(t, r.append(l, unique(), event.MessageDeltaData{MessageID: "m", RunID: "w-one", Attempt: 1, Text: fmt.Sprintf("%d ", i)}))
	}
	r.happens(l, event.RunCompletedData{RunID: "w-one", MessageID: "m"})
	for _, at := range []int{4, 999, 1000, 1001, 2000, 2200, 2304} {
		_, text, _ := r.get("/agui/threads/"+name, "Last-Event-ID", fmt.Sprint(at))
		var got, want strings.Builder
		for line := range strings.Lines(text) {
			if _, rest, found := strings.Cut(line, `"delta":"`); found {
				piece, _, _ := strings.Cut(rest, `"`)
				got.WriteString(piece)
			}
		}
		for i := at - 4; i < 2300; i++ {
			fmt.Fprintf(&want, "%d ", i)
		}
		require.Equal(t, want.String(), got.String(), "behind %d", at)
		all := framesIn(text)
		require.Equal(t, []string{"TEXT_MESSAGE_END", "RUN_FINISHED one"}, all[len(all)-2:])
	}
}

// takes is a pipeline that takes the next message of a thread and starts its run.
func (r *rig) takes(l subject.Log, run string) {
	r.t.Helper()
	for r.nextCommand(l.Entity.String()).Verb != wirecmd.SendMessage {
	}
	r.happens(l, running(run)...)
}

// TestARunEndsWithItsLastViewer where its client wants that, and only there.
func TestARunEndsWithItsLastViewer(t *testing.T) {
	r := start(t)
	for want, stops := range map[string]bool{"cancel": true, "continue": false} {
		name, l := r.thread()
		ctx, leave := context.WithCancel(t.Context())
		body := strings.TrimSuffix(ask(name, "one"), "}") + `,"forwardedProps":{"waggle":{"onDisconnect":"` + want + `"}}}`
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.addr+"/agui", strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		taken := make(chan struct{})
		go func() { defer close(taken); r.takes(l, "one") }()
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		<-taken
		_, err = res.Body.Read(make([]byte, 1))
		require.NoError(t, err)
		leave()
		_ = res.Body.Close()
		eventually(t, "the stream has ended", func() bool { return r.metric("waggle_gateway_connections") == 0 })
		if stops {
			c := r.nextCommand(l.Entity.String())
			require.Equal(t, wirecmd.Cancel, c.Verb)
			require.Contains(t, string(c.Data), "w-one")
			continue
		}
		status, text, _ := r.demands("/agui/threads/"+name+"/cancel", `{}`)
		require.Equal(t, http.StatusAccepted, status, text)
		require.NotContains(t, string(r.nextCommand(l.Entity.String()).Data), "disconnected", "the first cancel is that of the request")
	}
}

// TestAClientThatEditsHistoryGetsTheThreads, and hears of parts that are not handed on.
func TestAClientThatEditsHistoryGetsTheThreads(t *testing.T) {
	r := start(t)
	name, l := r.thread(running("one")...)
	r.happens(l, event.RunCompletedData{RunID: "w-one", Content: "done"})
	body := fmt.Sprintf(`{"threadId":%q,"runId":"two","protocolVersion":"1.0","messages":[{"id":"u-one","role":"user","content":"something else"},
		{"id":"u-two","role":"user","content":[{"type":"text","text":"more"},{"type":"image","source":{"type":"data","mimeType":"image/bmp","value":"AAAA"}}]}]}`, name)
	go func() {
		r.takes(l, "two")
		_ = r.append(l, unique(), event.RunCompletedData{RunID: "w-two", MessageID: "x"})
	}()
	status, text, _ := r.demands("/agui", body)
	require.Equal(t, http.StatusOK, status, text)
	require.Equal(t, []string{"RUN_STARTED two", "CUSTOM waggle.notice", "MESSAGES_SNAPSHOT", "RUN_FINISHED two"}, framesIn(text))
	require.Contains(t, text, `"content":"do one"`)
	require.Contains(t, text, `"part":"image"`)
}

// TestStreamsOfAPrincipalAreBounded: one program cannot take all connections with streams.
func TestStreamsOfAPrincipalAreBounded(t *testing.T) {
	r := start(t, authenticated(key("alice", "acme"), key("bob", "acme")))
	l := r.session("acme", "one")
	for range admission.MaxStreams {
		r.reads(streamOf(l), bearer("alice")...)
	}
	status, body, _ := r.get(streamOf(l), bearer("alice")...)
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Contains(t, body, "TOO_MANY_CONNECTIONS")
	r.reads(streamOf(l), bearer("bob")...)
}
