package swarm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// Message is a frame of the server whose content has not been looked at.
type Message struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	RequestID string          `json:"requestId,omitempty"` // the frame that it answers
	Seq       uint64          `json:"seq,omitempty"`       // position in the client's inbox; 0 = in no log
	Timestamp string          `json:"timestamp"`
	Content   json.RawMessage `json:"content"`
}

// parse reads a frame.
func parse(raw []byte) (Message, error) {
	var m Message
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fmt.Errorf("swarm: the server sent an invalid frame: %w", err)
	}
	if m.Type == "" {
		return m, errors.New("swarm: the server sent a frame without a type")
	}
	return m, nil
}

// as reads the content of a frame.
func as[T any](m Message) (T, error) {
	var v T
	if len(m.Content) == 0 {
		return v, nil
	}
	if err := json.Unmarshal(m.Content, &v); err != nil {
		return v, fmt.Errorf("swarm: the content of %s cannot be read: %w", m.Type, err)
	}
	return v, nil
}

// outFrame is a frame to the server.
type outFrame struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Timestamp string `json:"timestamp"`
	Content   any    `json:"content"`
}

// encode returns the frame and checks that the content can be sent.
func encode(id, kind string, content any) ([]byte, error) {
	if content == nil {
		content = struct{}{}
	}
	b, err := plainjson.Marshal(outFrame{ID: id, Type: kind, Timestamp: asp.Stamp(time.Now()), Content: content})
	if err != nil {
		return nil, fmt.Errorf("swarm: encode %s: %w", kind, err)
	}
	return b, nil
}

// millis is a duration in the protocol's unit, rounded up: 0 means none.
func millis(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// limited returns a context that ends when the time from sent to the deadline has passed. Both are by the server's clock,
// which need not be this machine's. Without one of them only its parent or a cancellation ends it.
func limited(parent context.Context, sent, deadline string) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	from, err := time.Parse(time.RFC3339, sent)
	if err != nil {
		return ctx, cancel
	}
	until, err := time.Parse(time.RFC3339, deadline)
	if err != nil {
		return ctx, cancel
	}
	ctx, stop := context.WithTimeout(ctx, until.Sub(from))
	return ctx, func(cause error) { cancel(cause); stop() }
}
