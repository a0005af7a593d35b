package gateway_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/waggle-dev/waggle/gateway/myagent"
	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// sessionProtocol returns the protocol of the tests whose sockets hold several sessions.
func sessionProtocol() myagent.Dialect {
	return myagent.New(myagent.Settings{ServerVersion: "test", SessionTTL: 24 * time.Hour, Heartbeat: 30 * time.Second, MaxConcurrentTasks: 4})
}

// multiRequest is a request of a client that holds several sessions. The Text "bad" is sent as a number.
type multiRequest struct {
	Ask     string // a key of multiTypes
	Session string
	Client  string
	Lang    string
	Text    string
	After   *uint64
	EventID string
	Hash    string
	Batch   bool
	Merge   bool
	Max     int
	Signed  json.RawMessage
}

// multiTypes are the messages that ask, with how the protocol calls them in its refusals.
var multiTypes = map[string]struct{ event, operation string }{
	"act": {wire.UserMessage, ""}, "open": {wire.UserCreateSession, "create_session"}, "ack": {wire.UserAck, "ack"},
	"resume": {wire.UserReconnectWithState, "reconnect_with_state"}, "import": {wire.UserReconnectWithState, "reconnect_with_state"},
	"export": {wire.UserRequestState, "request_state"},
}

// message returns the message of the protocol.
func (a multiRequest) message() map[string]any {
	m, content := map[string]any{"event": multiTypes[a.Ask].event}, map[string]any{}
	put := func(in map[string]any, name string, value any, there bool) {
		if there {
			in[name] = value
		}
	}
	put(m, "session_id", a.Session, a.Session != "" && a.Ask != "import")
	put(content, "client_id", a.Client, a.Client != "")
	switch a.Ask {
	case "act":
		put(m, "content", a.Text, a.Text != "bad")
		put(m, "content", 7, a.Text == "bad")
		return m
	case "export":
		m["metadata"] = map[string]any{"include_history": a.Max > 0, "max_history_events": a.Max}
		return m
	case "open":
		put(content, "preferences", map[string]any{"language": a.Lang}, a.Lang != "")
	default:
		put(content, "last_seq", a.After, a.After != nil)
		put(content, "last_event_id", a.EventID, a.EventID != "")
		put(content, "client_state_hash", a.Hash, a.Hash != "")
		put(content, "batch", true, a.Batch)
		put(content, "merge", true, a.Merge)
		put(content, "signed_state", a.Signed, a.Ask == "import")
	}
	m["content"] = content
	return m
}

// multiFrame is what a frame says to a client that holds several sessions, or in singleDialect, whose frames have this form.
type multiFrame struct {
	Kind    string          `json:"kind"`
	Lang    string          `json:"-"` // of the text for people
	Link    string          `json:"-"` // the connection that the frame is made for
	Session string          `json:"session,omitempty"`
	Seq     uint64          `json:"seq,omitempty"`
	From    uint64          `json:"-"`
	Type    string          `json:"type,omitempty"` // of the event; in the protocol of sessions the name of the frame
	Data    json.RawMessage `json:"data,omitempty"`
	Events  []multiFrame    `json:"-"`
	Count   int             `json:"-"`
	Cursor  string          `json:"-"`
	Matched *bool           `json:"-"`
	Action  string          `json:"-"`
	Code    string          `json:"code,omitempty"`
	Text    string          `json:"text,omitempty"`
}

// readMulti reads a frame of either protocol.
func readMulti(b []byte) (s multiFrame, err error) {
	if err = json.Unmarshal(b, &s); err != nil || s.Kind != "" {
		return s, err
	}
	var f framed
	if err = json.Unmarshal(b, &f); err != nil {
		return s, err
	}
	m := f.Metadata
	s = multiFrame{Lang: "en_US", Link: m.ConnectionID, Session: f.SessionID, Seq: f.Seq, Type: f.Event, From: m.MergedFrom}
	if strings.ContainsFunc(f.ShowContent, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
		s.Lang = "zh_CN"
	}
	switch of := f.Event + " " + m.Action; {
	case f.Seq > 0:
		s.Kind, s.Data = "event", b
	case m.ErrorType != "":
		s.Kind, s.Data, s.Action, s.Code = faultKind(s), f.Content, m.Operation, m.ErrorType
		err = json.Unmarshal(f.Content, &s.Text)
	case f.Event == wire.SystemConnected:
		s.Kind = "connected"
	case f.Event == wire.SystemHeartbeat:
		s.Kind, s.Seq = "heartbeat", m.Seq
	case f.Event == wire.AgentStateExported:
		s.Kind, s.Seq, s.Text, s.Data = "exported", m.LastSeq, m.StateHash, m.SessionState
	case f.Event == wire.AgentStateRestored:
		s.Kind = "restored"
	case of == wire.SystemNotice+" "+wire.ActionHistoryExpired:
		s.Kind, s.Seq = "expired", m.First
	case of == wire.SystemNotice+" "+wire.ActionReplay:
		s.Kind, s.Count, s.Seq, s.Matched = "replayed", m.Replayed, m.LastSeq, m.HashMatched
		s.Cursor = strings.TrimPrefix(m.LastEventID, s.Session+"-")
	case of == wire.SystemNotice+" "+wire.ActionReplayBatch:
		s.Kind = "batch"
		s.Events, err = readBatch(f.Content)
	default:
		err = fmt.Errorf("a frame that no test knows: %s", b)
	}
	return s, err
}

// faultKind returns the kind of a frame about a fault: of a frame of the client, of a command, or of the connection.
func faultKind(s multiFrame) string {
	switch {
	case s.Link != "":
		return "refused"
	case s.Session != "":
		return "direct"
	}
	return "failed"
}

// readBatch reads the frames in the content of one.
func readBatch(content json.RawMessage) (out []multiFrame, err error) {
	var list struct {
		Events []json.RawMessage `json:"event_list"`
	}
	err = json.Unmarshal(content, &list)
	for _, raw := range list.Events {
		s, bad := readMulti(raw)
		out, err = append(out, s), errors.Join(err, bad)
	}
	return out, err
}
