package session_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// TestASessionIsCreatedUnderAnIDOfTheClient, once. It keeps its preferences, and is refused to others.
func TestASessionIsCreatedUnderAnIDOfTheClient(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", indexed)
	w := r.serveGateway()
	const path = "/api/v1/sessions"
	for range 2 {
		a := w.Ask("alice", "POST", path, `{"session_id":"ticket-4711","confirm_plan":true,"language":"en"}`, nil)
		require.Equal(t, http.StatusCreated, a.Status, a.Body)
		require.Equal(t, path+"/ticket-4711", a.Header.Get("Location"))
	}
	l := subject.Log{Tenant: log.Tenant, Kind: id.KindSession, Entity: id.EntityFromExternal("ticket-4711")}
	require.Len(t, r.All(l), 1)
	first, err := event.As[event.SessionCreatedData](r.All(l)[0])
	require.NoError(t, err)
	require.True(t, *first.ConfirmPlan)
	require.Equal(t, []any{"alice", "en"}, []any{first.Principal, first.Language})

	require.Equal(t, "ticket-4711", answerOf[wire.SessionName](w, "alice", "POST", path, `{"session_id":"ticket-4711"}`, 201).SessionID, "other preferences are not asked for")
	for who, body := range map[string]string{"alice": `{"session_id":"ticket-4711","confirm_plan":false}`, "bob": `{"session_id":"ticket-4711"}`} {
		p := answerOf[wire.Problem](w, who, "POST", path, body, 409)
		require.Equal(t, []string{string(fault.SessionExists), "session_id"}, []string{p.Title, p.Field}, who)
	}
	odd := answerOf[wire.SessionName](w, "alice", "POST", path, `{"session_id":"täg eins"}`, 201).SessionID
	for _, name := range []string{odd, "t%C3%A4g%20eins"} {
		require.Equal(t, odd, answerOf[wire.SessionDetail](w, "alice", "GET", path+"/"+name, "", 200).SessionID)
	}
	require.Equal(t, "session_id", answerOf[wire.Problem](w, "alice", "POST", path, `{"session_id":"`+strings.Repeat("x", 1025)+`"}`, 422).Field)
	answerOf[wire.Problem](w, "vera", "POST", path, `{"session_id":"of-a-viewer"}`, 403)
	require.Equal(t, http.StatusNoContent, w.Ask("alice", "DELETE", path+"/ticket-4711", "", nil).Status)
	require.Equal(t, string(fault.SessionDeleted), answerOf[wire.Problem](w, "alice", "POST", path, `{"session_id":"ticket-4711"}`, 410).Title)
}

// TestAMessageCreatesItsSession under the client's id, and brings files, context and tools along.
func TestAMessageCreatesItsSession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", indexed)
	r.startPipeline("p")
	w := r.serveGateway()
	const path = "/api/v1/sessions/own-1"
	answerOf[wire.Problem](w, "alice", "POST", path+"/messages", `{"content":"hello"}`, 404)
	answerOf[wire.Problem](w, "vera", "POST", path+"/messages", `{"content":"hello","create_session":true}`, 403)
	picture, note := []byte("\x89PNG\r\n\x1a\n"), "buy milk"
	body := `{"id":"m1","create_session":true,"language":"de","content":"what is this?","context":[{"description":"time","value":"noon"}],` +
		`"tools":[{"name":"ring","description":"rings","input_schema":{"type":"object"}}],"files":[` +
		`{"media_type":"image/png","name":"bee.png","data":"` + base64.StdEncoding.EncodeToString(picture) + `"},` +
		`{"media_type":"text/plain","name":"note.txt","data":"` + base64.StdEncoding.EncodeToString([]byte(note)) + `"}]}`
	sent := answerOf[wire.Accepted](w, "alice", "POST", path+"/messages", body, 202)
	require.Equal(t, sent, answerOf[wire.Accepted](w, "alice", "POST", path+"/messages", body, 202), "a repeat")

	l := subject.Log{Tenant: log.Tenant, Kind: id.KindSession, Entity: id.EntityFromExternal("own-1")}
	created, err := event.As[event.SessionCreatedData](r.All(l)[0])
	require.NoError(t, err)
	require.Equal(t, []string{"alice", "de", "api"}, []string{created.Principal, created.Language, created.Dialect})
	said, err := event.As[event.MessageReceivedData](r.All(l)[1])
	require.NoError(t, err)
	require.Equal(t, sent.RunID, said.RunID)
	require.Equal(t, "ring", said.ClientTools[0].Name)
	require.Equal(t, []event.Fact{{Description: "file 2 of the message, note.txt (text/plain)", Value: note}, {Description: "time", Value: "noon"}}, said.Facts)
	require.Equal(t, []any{"image", "bee.png", len(picture)}, []any{said.Files[0].Kind, said.Files[0].Name, said.Files[0].Size})
	file := w.Ask("alice", "GET", path+"/files/"+said.Files[1].Object.Digest, "", nil)
	require.Equal(t, note, file.Body)
	require.Equal(t, []string{"application/octet-stream", "attachment"}, []string{file.Header.Get("Content-Type"), file.Header.Get("Content-Disposition")})
	file = w.Ask("alice", "GET", path+"/files/"+said.Files[0].Object.Digest, "", nil)
	require.Equal(t, "image/png", file.Header.Get("Content-Type"))
	require.Equal(t, picture, []byte(file.Body))

	p := answerOf[wire.Problem](w, "bob", "POST", path+"/messages", `{"content":"mine","create_session":true}`, 409)
	require.Equal(t, string(fault.SessionExists), p.Title)
	large := base64.StdEncoding.EncodeToString(make([]byte, 129<<10))
	for body, field := range map[string]string{
		`"files":[{"media_type":"image/png","data":"!"}]`:                                     "files[0].data",
		`"files":[{"media_type":"png/","data":"AAAA"}]`:                                       "files[0].media_type",
		`"files":[{"media_type":"image/png","data":"` + large + `"}]`:                         "files[0].data",
		`"tools":[{"name":"a b"}]`:                                                            "tools[0].name",
		`"context":[{"description":"x","value":"` + strings.Repeat("x", 33<<10) + `"}]`:       "context",
		`"files":[` + strings.Repeat(`{"media_type":"image/png","data":"AAAA"},`, 64) + `{}]`: "files",
	} {
		require.Equal(t, field, answerOf[wire.Problem](w, "alice", "POST", path+"/messages", `{"content":"x",`+body+`}`, 422).Field)
	}
}

// TestASessionIsNamedAndCreated: a name that a gateway gave has the preferences that are in it.
func TestASessionIsNamedAndCreated(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", indexed)
	r.startPipeline("p")
	w := r.serveGateway()
	named := answerOf[wire.SessionName](w, "alice", "POST", "/api/v1/sessions", `{"confirm_plan":true}`, 201).SessionID
	answerOf[wire.Accepted](w, "alice", "POST", "/api/v1/sessions/"+named+"/messages", `{"content":"hello","create_session":true}`, 202)
	l := subject.Log{Tenant: log.Tenant, Kind: id.KindSession, Entity: id.EntityFromExternal(named)}
	created, err := event.As[event.SessionCreatedData](r.All(l)[0])
	require.NoError(t, err)
	require.True(t, *created.ConfirmPlan)
}
