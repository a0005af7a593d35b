package e2e_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// dot is a PNG of one pixel.
const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// lookers answer with what they see. Model "blind" takes no images.
func lookers(x *scripted.Exchange) scripted.Reply {
	seen, calls := 0, 0
	for _, m := range x.Prompt.Messages {
		seen += len(m.Images)
		calls += len(m.ToolCalls)
	}
	user, _ := toldBy(x)
	switch {
	case strings.Contains(user, "refuse") && seen > 0:
		return scripted.Fail(http.StatusBadRequest, "invalid_request_error", "no images")
	case strings.Contains(user, "snap") && calls == 0:
		return scripted.Stream(scripted.Calls(0, scripted.Call{ID: "snap_1", Name: "camera_snap", Arguments: "{}"}))
	case strings.Contains(user, "shoot") && calls == 0:
		return scripted.Stream(scripted.Calls(0, scripted.Call{ID: "shot_1", Name: "shoot", Arguments: "{}"}))
	}
	return say(fmt.Sprintf("I see %d", seen))
}

// picture is a part with an image.
func picture() map[string]any {
	return map[string]any{"type": "image", "source": map[string]any{"type": "data", "mimeType": "image/png", "value": dot}}
}

// showing has the message of a request have parts besides its text.
func showing(parts ...any) func(map[string]any) {
	return func(in map[string]any) {
		list, _ := in["messages"].([]any)
		m, _ := list[len(list)-1].(map[string]any)
		m["content"] = append([]any{map[string]any{"type": "text", "text": m["content"]}}, parts...)
	}
}

// sources are the addresses of the stored files that a list of messages names.
func sources(t *testing.T, list []wire.Message) (out []string) {
	t.Helper()
	for _, m := range list {
		var parts []wire.Part
		if json.Unmarshal(m.Content, &parts) != nil {
			continue
		}
		for _, p := range parts {
			if p.Source != nil {
				require.Equal(t, "url", p.Source.Type)
				out = append(out, p.Source.Value)
			}
		}
	}
	return out
}

// snapshots are the messages of the last snapshot of a stream.
func snapshots(frames []aguiFrame) (last []wire.Message) {
	for _, f := range frames {
		if f.Type == wire.MessagesSnapshot {
			last = f.Messages
		}
	}
	return last
}

// TestAGUIFiles: the model sees the images of a message and those of later turns, at any gateway; others get addresses, which
// only those who see the thread can open.
func TestAGUIFiles(t *testing.T) {
	t.Parallel()
	at, cast := apart.forTenant(t, lookers)
	c, other := at.agui(), at.at(at.other).agui()
	thread, run := newRun(), newRun()
	pdf := map[string]any{"type": "document", "source": map[string]any{"type": "data", "mimeType": "application/pdf", "value": "JVBERi0="}, "metadata": map[string]any{"filename": "a.pdf"}}
	notes := map[string]any{"type": "document", "source": map[string]any{"type": "data", "mimeType": "text/plain", "value": base64.StdEncoding.EncodeToString([]byte("plain words"))}}
	first := c.run(thread, run, "look "+cast.cue, showing(picture(), pdf, notes))
	require.Equal(t, "I see 1", speech(first))
	asked := cast.asked()[0].Prompt.Messages[0]
	require.Equal(t, []model.Image{{MediaType: "image/png", Data: dot}}, asked.Images)
	require.Contains(t, asked.Content, "plain words")
	require.Contains(t, asked.Content, "File: a.pdf (application/pdf, 5 bytes)\n(This file of the type application/pdf is not shown to you")
	notices := 0
	for _, one := range first {
		if one.Type == wire.Custom && one.Name == wire.CustomNotice {
			require.Contains(t, string(one.Value), `"part":"document"`)
			notices++
		}
	}
	require.Equal(t, 1, notices, "the model cannot take the PDF")
	require.Len(t, sources(t, snapshots(first)), 3, "who has sent the files gets addresses for them")

	joined := other.get("/threads/" + thread)
	urls := sources(t, snapshots(joined))
	require.Len(t, urls, 3)
	require.Equal(t, joined[len(joined)-1].Outcome.Type, wire.OutcomeSuccess)
	status, page := other.text(http.MethodGet, "/threads/"+thread+"/messages", nil)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, urls[0])
	for i, want := range []struct{ media, body string }{{"image/png", dot}, {"application/octet-stream", "JVBERi0="}, {"application/octet-stream", "cGxhaW4gd29yZHM="}} {
		got := fetch(t, http.MethodGet, at.other, urls[i], at.key)
		require.Equal(t, http.StatusOK, got.status, "%s", got.body)
		require.Equal(t, want.media, got.header.Get("Content-Type"))
		require.Equal(t, "nosniff", got.header.Get("X-Content-Type-Options"))
		require.Contains(t, got.header.Get("Content-Security-Policy"), "sandbox")
		require.Equal(t, want.body, base64.StdEncoding.EncodeToString([]byte(got.body)))
	}
	for _, path := range []string{strings.Replace(urls[0], "/files/", "/files/0", 1), urls[0][:len(urls[0])-2] + "zz"} {
		require.Equal(t, http.StatusNotFound, fetch(t, http.MethodGet, at.addr, path, at.key).status)
	}

	require.Equal(t, "I see 2", speech(other.run(thread, newRun(), "and now", showing(picture()))), "the earlier one is part of the conversation")
	planned := c.run(newRun(), newRun(), "look "+cast.cue, func(in map[string]any) {
		showing(picture())(in)
		in["forwardedProps"] = map[string]any{"waggle": map[string]any{"mode": "chat"}}
	})
	require.Equal(t, "I see 1", speech(planned))
}

// TestAGUIFilesThatAModelRefuses are left out; the model and people are told so.
func TestAGUIFilesThatAModelRefuses(t *testing.T) {
	t.Parallel()
	p, cast := apart.forTenant(t, lookers)
	c := p.agui()
	frames := c.run(newRun(), newRun(), "refuse "+cast.cue, showing(picture()))
	require.Equal(t, "I see 0", speech(frames))
	told := false
	for _, f := range frames {
		told = told || f.Name == wire.CustomNotice && strings.Contains(string(f.Value), "does not take the images of this conversation (1)")
	}
	require.True(t, told)
	for parts, field := range map[string]string{
		`{"type":"image","source":{"type":"data","mimeType":"image/png","value":"?"}}`:                                                                "messages[0].content[0].source.value",
		`{"type":"image","source":{"type":"data","mimeType":"image/png","value":"` + base64.StdEncoding.EncodeToString(make([]byte, 129<<10)) + `"}}`: "messages[0].content[0].source.value",
	} {
		body := `{"threadId":"t","runId":"` + newRun() + `","protocolVersion":"1.0","messages":[{"id":"1","role":"user","content":[` + parts + `]}]}`
		status, text := c.text(http.MethodPost, "", []byte(body))
		require.Equal(t, http.StatusUnprocessableEntity, status, text)
		require.Contains(t, text, field)
	}
}
