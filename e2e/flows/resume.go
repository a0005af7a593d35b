package flows

import (
	"encoding/json"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

// told makes a session with one run of one task, whose events are the same every time.
func told(s *Scene) *Socket {
	m := s.Open(nil)
	m.Solve(nil, "say hi")
	m.Await(answer)
	return m
}

// logged returns the frames of the log that a socket has got, with their texts.
func (m *Socket) logged() []string {
	var out []string
	for _, l := range m.s.lines {
		switch {
		case l.sent || l.socket != m.name:
		case l.frame.Seq > 0:
			out = append(out, string(l.raw))
		default:
			for _, raw := range sdk.As[myagent.NoticeContent](l.frame.Content).EventList {
				out = append(out, string(raw))
			}
		}
	}
	return out
}

func resumption() []Flow {
	// back is a client that has lost its connection after the seq and asks for the rest.
	back := func(after uint64, content map[string]any) func(s *Scene) {
		return func(s *Scene) {
			m := told(s)
			want := m.logged()
			m.Cut()
			again := s.Dial("again")
			again.Resume(after, content)
			require.Equal(s.t, want[after:], again.logged(), "as it was shown before")
		}
	}
	return []Flow{
		{Name: "resume", Exact: true, About: "A client comes back and gets what it has missed, one by one, as it was.", Demo: true, Play: back(3, nil)},
		{Name: "resume_batch", Exact: true, About: "The same in lists.", Demo: true, Play: back(3, map[string]any{"batch": true})},
		{Name: "resume_merge", About: "The pieces of a text come as one, behind the one that begins it.", Play: func(s *Scene) {
			m := s.Open(nil)
			m.Solve(nil, "pieces resume_merge")
			m.awaitPiece(myagent.AgentPartialAnswer)
			s.Release("resume_merge")
			m.awaitPiece(myagent.AgentPartialAnswer)
			s.Release("resume_merge end")
			m.Await(answer)
			again := s.Dial("again")
			again.Resume(0, map[string]any{"merge": true})
		}},
	}
}

// positions are flows about where a client stands.
func positions() []Flow {
	return []Flow{
		{Name: "resume_nothing", Exact: true, About: "Nothing was missed.", Demo: true, Play: func(s *Scene) {
			m := told(s)
			seq := m.Seq()
			again := s.Dial("again")
			again.Resume(seq, nil)
		}},
		{Name: "resume_event_id", Exact: true, About: "A client that knows the event_id of the last frame that it got.", Demo: true, Play: func(s *Scene) {
			m := told(s)
			all := m.logged()
			last := sdk.As[sdk.Frame](json.RawMessage(all[len(all)-3]))
			again := s.Dial("again")
			again.Use()
			again.last[s.session] = last.Seq
			again.Send(myagent.UserReconnectWithState, map[string]any{"content": map[string]any{"last_event_id": last.EventID}})
			again.Await("system.notice replay")
		}},
		{Name: "resume_beyond", Exact: true, About: "A position beyond the newest event.", Demo: true, Play: func(s *Scene) {
			told(s)
			again := s.Dial("again")
			again.Use()
			again.Send(myagent.UserReconnectWithState, map[string]any{"content": map[string]any{"last_seq": 9999}})
			again.Await(myagent.ErrorValidation)
		}},
		{Name: "resume_unknown", About: "A session that is not there.", Demo: true, Play: func(s *Scene) {
			m := s.Dial("client")
			m.Send(myagent.UserReconnectWithState, map[string]any{"session_id": "unknown_session", "content": map[string]any{"last_seq": 3}})
			m.Await(myagent.ErrorRecoveryFailed)
			m.Send(myagent.UserMessage, map[string]any{"session_id": "unknown_session", "content": "hello"})
			m.Await(myagent.ErrorRecoveryFailed)
		}},
	}
}

func onlookers() []Flow {
	return []Flow{
		{Name: "resume_live", About: "A client reconnects during a run and follows it.", Play: func(s *Scene) {
			m := s.Open(nil)
			m.Solve(nil, "hold resume_live")
			m.awaitPiece(myagent.AgentPartialAnswer)
			seq := m.Seq()
			m.Cut()
			again := s.Dial("again")
			again.Resume(seq-3, nil)
			s.Release("resume_live")
			again.Await(answer)
		}},
		{Name: "resume_bare", About: "Another socket simply goes on with the session: it gets what comes from then on.", Demo: true, Play: func(s *Scene) {
			told(s)
			phone := s.Dial("phone")
			phone.Use()
			phone.Solve(nil, "what is 7*6?")
			phone.Await(answer)
		}},
		{Name: "ack", Exact: true, About: "Acknowledgements in all their shapes are not answered, not even one of what was never sent: what comes next is the answer to what was asked after them.", Demo: true, Play: func(s *Scene) {
			m := told(s)
			id := sdk.As[sdk.Frame](json.RawMessage(m.logged()[3])).EventID
			m.Send(myagent.UserAck, map[string]any{"metadata": map[string]any{
				"last_seq": 3, "received_count": 3, "gap_detected": false, "ack_time_ms": 100, "client_id": "client_1",
			}})
			m.Send(myagent.UserAck, map[string]any{"content": map[string]any{"last_seq": 4}})
			m.Send(myagent.UserAck, map[string]any{"content": map[string]any{"last_event_id": id}})
			m.Send(myagent.UserAck, map[string]any{"seq": 5})
			m.Raw(`{"event":"user.ack","content":{"last_seq":2}}`)
			m.Send(myagent.UserAck, map[string]any{"metadata": map[string]any{"last_seq": 9999}})
			m.Raw(`{"event":"user.ack","session_id":"` + s.session + `"}`)
			m.Raw(`{"event":"user.ack","session_id":"unknown_session","content":{"last_seq":2}}`)
			m.Raw(`{"event":"user.ack","metadata":{"last_seq":-1}}`)
			m.Raw(`{"event":"user.nothing","session_id":"` + s.session + `"}`)
			m.Await(myagent.ErrorValidation)
		}},
	}
}

func states() []Flow {
	export := map[string]any{"metadata": map[string]any{"include_history": true, "max_history_events": 4}}
	signed := func(f sdk.Frame) json.RawMessage {
		return sdk.As[myagent.StateExportedMeta](f.Metadata).SignedState
	}
	return []Flow{
		{Name: "state_export", Exact: true, About: "The state, with the newest events.", Demo: true, Play: func(s *Scene) {
			m := told(s)
			m.Send(myagent.UserRequestState, export)
			m.Await(myagent.AgentStateExported)
		}},
		{Name: "state_hash", Exact: true, About: "A client that knows what the state looked like, and one that does not.", Demo: true, Play: func(s *Scene) {
			m := told(s)
			m.Send(myagent.UserRequestState, nil)
			hash := sdk.As[myagent.StateExportedMeta](m.Await(myagent.AgentStateExported)[0].Metadata).StateHash
			seq := m.Seq()
			again := s.Dial("again")
			again.Resume(seq, map[string]any{"client_state_hash": hash})
			again.Resume(seq, map[string]any{"client_state_hash": "abc123def456"})
		}},
		{Name: "state_import", Exact: true, About: "The state is taken to another installation that has the key. The session goes on there under its id.", Demo: true, Play: func(s *Scene) {
			m := told(s)
			m.Send(myagent.UserRequestState, nil)
			state := signed(m.Await(myagent.AgentStateExported)[0])
			other := s.DialElsewhere("elsewhere")
			other.Send(myagent.UserReconnectWithState, map[string]any{"signed_state": state})
			other.Await(myagent.AgentStateRestored, "system.notice replay")
			other.Use()
			other.Solve(nil, "say hello")
			other.Await(answer)
		}},
		{Name: "state_import_confirming", Live: true, About: "A session with an open question is taken along, and the question is answered at the other place.", Demo: true, Play: func(s *Scene) {
			m, _ := asked(s)
			m.Send(myagent.UserRequestState, nil)
			state := signed(m.Await(myagent.AgentStateExported)[0])
			other := s.DialElsewhere("elsewhere")
			other.Send(myagent.UserReconnectWithState, map[string]any{"signed_state": state})
			q := other.Await(myagent.AgentUserConfirm, myagent.AgentStateRestored, "system.notice replay")[0]
			other.Use()
			other.Respond(q.StepID, map[string]any{"approved": true})
			other.Await(answer)
		}},
		{Name: "state_tampered", About: "A state that was changed on its way is not taken.", Demo: true, Play: func(s *Scene) {
			m := told(s)
			m.Send(myagent.UserRequestState, nil)
			state := string(signed(m.Await(myagent.AgentStateExported)[0]))
			other := s.DialElsewhere("elsewhere")
			changed := strings.Replace(state, "client_1", "client_2", 1)
			require.NotEqual(s.t, state, changed)
			other.Send(myagent.UserReconnectWithState, map[string]any{"signed_state": json.RawMessage(changed)})
			other.Await(myagent.ErrorRecoveryFailed)
		}},
	}
}
