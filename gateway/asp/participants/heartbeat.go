package participants

import (
	"bytes"

	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/strictjson"
)

// maxHeartbeat is far more than a ping has to say. Others wait their turn.
const maxHeartbeat = 1 << 10

// heartbeatWord is in every frame that may ask for a sign of life: only those are read twice.
var heartbeatWord = []byte("ping")

// Heartbeat answers a frame that asks for nothing but a sign of life, beside the frames
// that are being handled. It reports whether it has; otherwise the frame waits for its
// turn, also if such frames come faster than pings of WebSocket may.
func (p *Participant) Heartbeat(message []byte) bool {
	if len(message) > maxHeartbeat || !bytes.Contains(message, heartbeatWord) || strictjson.Check(message) != nil {
		return false
	}
	orders, _, err := p.codec.Orders(message, p.inbound())
	if err != nil || len(orders) == 0 {
		return false
	}
	for _, o := range orders {
		if !o.Heartbeat {
			return false
		}
	}
	if !p.c.AllowHeartbeat() {
		return false
	}
	for _, o := range orders {
		for _, b := range o.Frames {
			p.c.Force(transport.Text(b))
		}
	}
	return true
}
