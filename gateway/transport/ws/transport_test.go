package ws

import (
	"testing"

	"github.com/waggle-dev/waggle/gateway/transport/transporttest"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

func TestTransport(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) *transporttest.Link {
		r := newRig(t, Options{QueueBytes: transporttest.Bound}, false)
		p, e := r.pair()
		return &transporttest.Link{
			Transport: e, Room: e.low, Cut: func() { _ = p.Close() },
			Read: func() (messages []string, code string) {
				for {
					op, b, err := p.next()
					if err != nil {
						return messages, code
					}
					switch op {
					case opClose:
						code = string(b[2:])
						_, _ = p.Write(masked(opClose, b))
					case opText:
						messages = append(messages, string(b))
					}
				}
			},
		}
	})
}

// TestEndsSayFaults: every fault of the catalogue has a close code that may be sent.
func TestEndsSayFaults(t *testing.T) {
	for _, e := range fault.Catalogue {
		if code := CloseCode(fault.New(e.Code)); !sendable(code) {
			t.Errorf("%s ends with %d", e.Code, code)
		}
	}
}
