package swarm_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// playing runs a server for examples, which have no test to end it: it ends with its
// one connection.
func playing(script func(read func() in, send func(kind, requestID, content string))) string {
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { go srv.Close() }() // it waits for this handler
		defer func() { _ = conn.CloseNow() }()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		read := func() (f in) {
			if _, b, err := conn.Read(ctx); err == nil {
				_ = json.Unmarshal(b, &f)
			}
			return f
		}
		script(read, func(kind, requestID, content string) {
			_ = conn.Write(ctx, websocket.MessageText, []byte(`{"id":"m","type":"`+kind+`","requestId":"`+requestID+`","content":`+content+`}`))
		})
		for f := read(); f.Type != ""; f = read() {
			if f.Type == "agent.unregister" {
				send := `{"id":"m","type":"agent.unregistered","requestId":"` + f.ID + `","content":{}}`
				_ = conn.Write(ctx, websocket.MessageText, []byte(send))
			}
		}
	}))
	return "ws" + strings.TrimPrefix(srv.URL, "http")
}

func exampleServer() string {
	return playing(func(read func() in, send func(kind, requestID, content string)) {
		send("orchestrator.client.welcome", "", `{"clientId":"c"}`)
		send("client.register.response", read().ID, `{"success":true}`)
		create := read().ID
		send("client.agent.task.create.response", create, `{"taskId":"t","status":"created"}`)
		send("task.notification", "", `{"taskId":"t","notificationType":"progress","message":"reading"}`)
		send("task.requestmessage", "", `{"taskId":"t","message":"which language?"}`)
		send("task.message.sent", read().ID, `{"taskId":"t","status":"sent"}`)
		send("client.agent.task.result", create, `{"taskId":"t","status":"completed","result":"buenos días"}`)
	})
}

func exampleAgents(done func(result any)) string {
	return playing(func(read func() in, send func(kind, requestID, content string)) {
		send("orchestrator.welcome", "", `{}`)
		send("agent.registered", read().ID, `{"id":"upper-1"}`)
		send("task.execute", "", `{"taskId":"t","data":{"text":"hello"},"input":{"text":"hello"},"metadata":{}}`)
		f := read()
		for ; f.Type != "agent.task.result" && f.Type != ""; f = read() {
			send("task.message.received", f.ID, `{}`)
		}
		var r struct{ Result any }
		_ = json.Unmarshal(f.Content, &r)
		send("pong", read().ID, `{}`)
		done(r.Result)
	})
}
