package events

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/gateway/events/canonical"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Names of the events of a connection with topics, besides those of the canonical dialect.
const (
	eventOfLog     = "log"
	eventAnnounced = "announced"
)

// Topics shows several things on one connection, each as a topic. One that cannot be shown says so and leaves the others alone.
// Each event of a log has the positions of all logs as its id, so that a client that comes back names them all at once.
type Topics struct {
	to      transport.Transport
	watches *stream.Watches

	all []*topic   // complete before any is shown
	mu  sync.Mutex // guards the positions of all topics
}

var _ Binding = (*Topics)(nil)

// NewTopics returns a binding to nothing. Log and Announcements add topics, and Show begins to show them. The viewers are listed
// in w.
func NewTopics(to transport.Transport, w *stream.Watches) *Topics {
	return &Topics{to: to, watches: w}
}

// Log adds the events of a log after a position, as a topic of the name.
func (t *Topics) Log(ctx context.Context, name string, src *stream.Source, log subject.Log, after eventlog.Cursor) {
	one := &topic{of: t, name: name, event: eventOfLog, log: string(log.Kind) + "/" + log.Entity.String(), at: transport.Position{Seq: after.Seq}}
	one.show = func() error {
		one.shown = NewLog(ctx, src, log, after, one, t.watches)
		return nil
	}
	t.all = append(t.all, one)
}

// Announcements adds the announcements of a tenant, as Announcements.Show shows them, as a topic of the name.
func (t *Topics) Announcements(ctx context.Context, name string, a *Announcements, who auth.Principal, types []event.Type) {
	one := &topic{of: t, name: name, event: eventAnnounced}
	one.show = func() error {
		live, err := a.Show(ctx, who, types, one, t.watches)
		if err == nil {
			one.shown = live
		}
		return err
	}
	t.all = append(t.all, one)
}

// Show begins to show the topics, once all are added: the id of the first event names the positions of all logs.
func (t *Topics) Show() {
	for _, one := range t.all {
		if err := one.show(); err != nil {
			End(one, fault.From(err, ""))
		}
	}
}

// Fail says why a topic is not shown.
func (t *Topics) Fail(name string, f *fault.Fault) {
	t.to.Force(problem(name, codec.Fail(f, time.Time{})))
}

// Room implements Binding.
func (t *Topics) Room() {
	for _, one := range t.all {
		if one.shown != nil {
			one.shown.Room()
		}
	}
}

// Close implements Binding.
func (t *Topics) Close() {
	for _, one := range t.all {
		if one.shown != nil {
			one.shown.Close()
		}
	}
}

// positions returns those of all logs. The caller has locked.
func (t *Topics) positions() string {
	var all []string
	for _, one := range t.all {
		if one.log != "" {
			all = append(all, one.log+"@"+strconv.FormatUint(one.at.Seq, 10))
		}
	}
	return strings.Join(all, " ")
}

// topic is the part of a connection that shows one thing.
type topic struct {
	of    *Topics
	name  string
	event string       // name of its events
	log   string       // KIND/ID; empty = no log
	show  func() error // sets shown
	shown Binding

	at   transport.Position // guarded by of.mu, as is over
	over bool
}

var _ transport.Transport = (*topic)(nil)

// Send implements transport.Transport.
func (t *topic) Send(ms ...*transport.Message) (accepted int) {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	for _, m := range ms {
		if t.over {
			return accepted
		}
		before, name := t.at, t.event
		if m.Event == canonical.EventGap {
			name = m.Event
		}
		out := transport.New(m.Data, name, transport.Position{})
		if m.Position.Seq > 0 {
			t.at = m.Position
			out.ID = t.of.positions()
		}
		if t.of.to.Send(out) == 0 {
			t.at = before
			return accepted
		}
		accepted++
	}
	return accepted
}

// Force implements transport.Transport: the only messages that have to get through are problems.
func (t *topic) Force(m *transport.Message) bool {
	t.of.mu.Lock()
	over := t.over
	t.of.mu.Unlock()
	return !over && t.of.to.Force(problem(t.name, m.Data))
}

// End implements transport.Transport. Only the end of the gateway ends the other topics, too.
func (t *topic) End(f *fault.Fault) {
	t.of.mu.Lock()
	t.over = true
	t.of.mu.Unlock()
	if f != nil && f.Code == fault.Draining {
		t.of.to.End(f)
	}
}

// Done implements transport.Transport.
func (t *topic) Done() <-chan struct{} { return t.of.to.Done() }

// problem is a problem document about a topic.
func problem(name string, doc []byte) *transport.Message {
	var out bytes.Buffer
	out.WriteString(`{"topic":`)
	quoted, err := json.Marshal(name)
	if err != nil { // a text can be encoded
		quoted = []byte(`""`)
	}
	out.Write(quoted)
	out.WriteString(`,"problem":`)
	out.Write(doc)
	out.WriteByte('}')
	return transport.New(out.Bytes(), canonical.EventProblem, transport.Position{})
}
