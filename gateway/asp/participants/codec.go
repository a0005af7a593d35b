package participants

import (
	"time"

	"github.com/waggle-dev/waggle/gateway/asp"
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

var _ stream.Codec = logCodec{}

// logCodec shows the log of a client, or a run, in a codec of the swarm.
type logCodec struct{ *asp.Codec }

// Fail implements stream.Codec. Agents and services learn the end of their connection by the
// close code and its reason alone, and clients a fault that passes: an error that answers no
// request ends programs that use the SDKs and do not expect one.
func (s logCodec) Fail(f *fault.Fault, now time.Time) []byte {
	if f.Retryable() || s.Kind() != command.ParticipantClient {
		return nil
	}
	return s.Refuse(dialect.Link{Now: now}, asp.Order{}, f)
}

// Truncated returns the frame that tells a client that events before it have expired.
func (s logCodec) Truncated(_ uint64, now time.Time) []byte {
	return s.Refuse(dialect.Link{Now: now}, asp.Order{}, fault.New(fault.HeadExpired))
}
