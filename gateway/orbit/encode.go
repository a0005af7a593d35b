package orbit

import (
	"time"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	wire "github.com/waggle-dev/waggle/proto-schemas/orbit"
)

// Encode implements dialect.Codec. An event that should give a frame but cannot be
// read gives an error frame: a viewer must not mistake a damaged log for silence.
// Events of members of a team have the frames that they have in their own logs, with
// the member as agent.
func (c codec) Encode(e event.Event) [][]byte {
	e = event.Unwrap(e)
	encode, ok := c.frames[e.Type]
	if !ok {
		encode = neutral
	}
	frame, err := encode(e)
	switch {
	case err != nil:
		f := fault.Newf(fault.Internal, "An event of this session could not be shown. Tell the operator its seq.")
		return one(render(wire.Frame[wire.ErrorData]{
			Type: wire.Error, Seq: e.Sequence, Timestamp: stamp(e.Time), Agent: e.Via.Route, Data: errorData(f),
		}))
	case frame == nil:
		return nil
	}
	return one(frame)
}

// Greet implements dialect.Codec.
func (codec) Greet(g dialect.Greeting) [][]byte {
	none := wire.ExecutionID("")
	if g.Stage == dialect.Starting {
		return one(render(wire.Frame[wire.MessageData]{
			Type: wire.AgentStart, Timestamp: stamp(g.Now), ExecutionID: &none,
			Data: wire.MessageData{Message: wire.StartText},
		}))
	}
	return one(render(wire.Frame[wire.ReadyData]{
		Type: wire.AgentReady, Timestamp: stamp(g.Now), ExecutionID: &none,
		Data: wire.ReadyData{Message: wire.ReadyText, SessionID: g.SessionID, LastSeq: g.Seq},
	}))
}

// Fail implements dialect.Codec.
func (codec) Fail(f *fault.Fault, now time.Time) []byte {
	return failure(errorData(f), now)
}

// Truncated implements dialect.Codec.
func (codec) Truncated(first uint64, now time.Time) []byte {
	d := errorData(fault.New(fault.HeadExpired))
	d.FirstSeq = first
	return failure(d, now)
}

// failure is an error frame that belongs to no run: clients take it as news, not
// as the end of an answer.
func failure(d wire.ErrorData, now time.Time) []byte {
	return render(wire.Frame[wire.ErrorData]{Type: wire.Error, Timestamp: stamp(now), Data: d})
}

func errorData(f *fault.Fault) wire.ErrorData {
	return wire.ErrorData{Message: f.Public(), Code: string(f.Code), Field: f.Field}
}

// render encodes a frame whose data has no raw members, which cannot fail.
func render[D any](f wire.Frame[D]) []byte {
	b, err := f.Encode()
	if err != nil {
		panic("orbit: " + err.Error())
	}
	return b
}

func one(frame []byte) [][]byte { return [][]byte{frame} }
