package flows

import (
	"encoding/json"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

// acknowledges sends what a console sends every 200 ms, whatever has happened: the
// event_id that it saw last, or the seq as long as it has seen none. It names no session.
func (m *Socket) acknowledges() {
	m.s.t.Helper()
	ack := map[string]any{"event": myagent.UserAck, "content": map[string]any{"last_seq": 0}}
	if m.seen != "" {
		ack["content"] = map[string]any{"last_event_id": m.seen}
	}
	raw, err := json.Marshal(ack)
	require.NoError(m.s.t, err)
	m.Raw(string(raw))
	m.Raw(string(raw))
}

// quiet requires that nothing of what was sent is answered: the next answer is that to
// this.
func (m *Socket) quiet() {
	m.s.t.Helper()
	m.Raw(`{"event":"user.nothing"}`)
	m.Await(myagent.ErrorValidation)
}

// consoles are flows of the original's console: its frames, at its times.
func consoles() []Flow {
	return []Flow{
		{Name: "console", About: "A console: it sends acknowledgements before it has a session and ever after, shows its own messages itself, and sends the tasks of a plan back when it confirms it. It gets the answer in deltas, and no other deltas.", Demo: true, Play: func(s *Scene) {
			m := s.Console("console")
			m.acknowledges()
			m.Raw(`{"event":"user.create_session","metadata":{"confirm_plan":true}}`)
			m.use(m.Await(myagent.AgentSessionCreated)[0])
			m.acknowledges()
			m.Ask("what is 2+3?; what is 7*6?", map[string]any{"max_concurrent": 1})
			question := m.Await(myagent.AgentUserConfirm)[0]
			m.acknowledges()
			m.Respond(question.StepID, map[string]any{"confirmed": true, "tasks": sdk.As[myagent.ConfirmMeta](question.Metadata).Tasks})
			m.Await(answer)
			m.acknowledges()
			m.quiet()
		}},
		{Name: "console_again", Exact: true, About: "A console loses its connection and says nothing but its acknowledgements on the next one: what it has missed follows, then what happens. With two sessions on the socket each acknowledgement finds its own, and one that does not say whose it is is dropped.", Demo: true, Play: func(s *Scene) {
			m := told(s)
			last := sdk.As[sdk.Frame](json.RawMessage(m.logged()[3]))
			m.Cut()
			again := s.Console("console")
			again.seen = last.EventID
			again.acknowledges()
			again.Await(answer)
			again.acknowledges()
			again.Raw(`{"event":"user.create_session"}`)
			again.use(again.Await(myagent.AgentSessionCreated)[0])
			again.acknowledges()
			again.Raw(`{"event":"user.ack","content":{"last_seq":3}}`)
			again.quiet()
		}},
	}
}

// use speaks to the session of the frame from now on.
func (m *Socket) use(f sdk.Frame) { m.talk.Session, m.s.session = f.SessionID, f.SessionID }
