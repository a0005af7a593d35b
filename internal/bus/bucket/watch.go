package bucket

import (
	"context"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Entry is the value of a key.
type Entry[V any] struct {
	Value    V
	Revision uint64    // of the bucket: grows with every write
	Written  time.Time // by the clock of the server
}

// Change is the new state of a key. A key is gone after a deletion, a purge or its expiry, and if its value cannot be
// decoded.
type Change[V any] struct {
	Key string
	Entry[V]
	Gone bool
}

// Feed delivers messages, as bus.Feed does.
type Feed interface {
	Updates() <-chan *bus.Message
	Over() <-chan struct{}
	Stop()
}

// Watch opens a feed of the newest values of the keys that match the patterns, and of their changes. EntryOf decodes
// its messages.
func Watch(ctx context.Context, c *bus.Conn, name string, patterns ...string) (*bus.Feed, error) {
	filters := make([]string, len(patterns))
	for i, p := range patterns {
		filters[i] = subject.BucketSubject(name, p)
	}
	return c.Feed(ctx, subject.BucketStream(name), jetstream.DeliverLastPerSubjectPolicy, filters...)
}

// EntryOf returns the change of a key that a message is; nil for nil.
func EntryOf(name string, m *bus.Message) *Change[[]byte] {
	if m == nil {
		return nil
	}
	gone := m.Header.Get("KV-Operation") != "" || m.Header.Get(jetstream.MarkerReasonHeader) != ""
	return &Change[[]byte]{
		Key:   strings.TrimPrefix(m.Subject, subject.BucketSubject(name, "")),
		Entry: Entry[[]byte]{Value: m.Data, Revision: m.Sequence, Written: m.Time}, Gone: gone,
	}
}
