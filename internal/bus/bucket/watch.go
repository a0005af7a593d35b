package bucket

import (
	"context"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

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
