package gateway

import (
	"net/url"
	"time"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

var (
	_ dialect.Dialect = spoken{}
	_ dialect.Codec   = spoken{}
)

// spoken is a codec of peers in the place of a dialect with one codec, so that their
// sockets are admitted and their logs shown as all others are.
type spoken struct{ dialect.Peers }

// Bind implements dialect.Dialect.
func (s spoken) Bind(url.Values) (dialect.Codec, error) { return s, nil }

// Decode implements dialect.Codec. Frames of peers become orders instead.
func (spoken) Decode([]byte, dialect.Inbound) ([]command.Command, error) {
	return nil, fault.New(fault.UnknownType)
}

// Encode implements dialect.Codec.
func (s spoken) Encode(e event.Event) [][]byte { return s.Peers.Encode(e) }

// Greet implements dialect.Codec. Peers are welcomed instead.
func (spoken) Greet(dialect.Greeting) [][]byte { return nil }

// Fail implements dialect.Codec. Why its socket ends an agent or a service hears by the
// close code and its reason alone, and so does a client of what passes: an error that
// answers to nothing ends programs that use the SDKs and do not expect one.
func (s spoken) Fail(f *fault.Fault, now time.Time) []byte {
	if f.Retryable() || s.Kind() != command.PeerClient {
		return nil
	}
	return s.Refuse(dialect.Link{Now: now}, "", f)
}

// Truncated implements dialect.Codec.
func (s spoken) Truncated(_ uint64, now time.Time) []byte {
	return s.Refuse(dialect.Link{Now: now}, "", fault.New(fault.HeadExpired))
}
