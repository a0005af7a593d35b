package bus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// feedHeartbeat is the interval at which the server says that a quiet feed is alive; after feedSilence of these without any
	// message the feed ends.
	feedHeartbeat = 5 * time.Second
	feedSilence   = 3
	// feedWaiting is the number of messages that wait for the reader of a feed; then the server waits too.
	feedWaiting = 256
)

// Message is a stored message of a feed.
type Message struct {
	Subject  string
	Header   nats.Header
	Data     []byte
	Sequence uint64    // in the stream
	Time     time.Time // by the clock of the server
}

// Feed delivers the messages of a stream in order. It ends at the first sign that one may be missing; the reader then
// opens another one.
//
// Its consumer ends by itself within seconds after the feed. So no user needs the right to delete consumers, which
// could not be limited to its own ones.
type Feed struct {
	out    chan *Message
	over   chan struct{}
	once   sync.Once
	sub    *nats.Subscription
	beat   time.Duration // between two signs of life
	silent *time.Timer

	number   uint64 // of the last delivery
	first    uint64 // messages that the stream had at the beginning
	complete bool
}

// Feed opens a feed of the messages that match the filters, beginning as the policy says, and following new ones.
func (c *Conn) Feed(ctx context.Context, stream string, from jetstream.DeliverPolicy, filters ...string) (*Feed, error) {
	return c.feed(ctx, stream, feedHeartbeat, jetstream.ConsumerConfig{DeliverPolicy: from}, filters)
}

// Headers opens a feed of the messages that match the filter and follow the sequence, without their data. With newest
// it delivers of the messages that the stream has only the last one of each subject, whatever the sequence.
func (c *Conn) Headers(ctx context.Context, stream, filter string, after uint64, newest bool) (*Feed, error) {
	cfg := jetstream.ConsumerConfig{HeadersOnly: true, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: after + 1}
	if newest {
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverLastPerSubjectPolicy, 0
	}
	return c.feed(ctx, stream, feedHeartbeat, cfg, []string{filter})
}

func (c *Conn) feed(ctx context.Context, stream string, beat time.Duration, cfg jetstream.ConsumerConfig, filters []string) (*Feed, error) {
	f := &Feed{out: make(chan *Message, feedWaiting), over: make(chan struct{}), beat: beat}
	f.silent = time.AfterFunc(feedSilence*beat, f.Stop)
	inbox := c.nc.NewInbox()
	began := make(chan struct{})
	var err error
	f.sub, err = c.nc.Subscribe(inbox, func(m *nats.Msg) {
		<-began
		f.take(m)
	})
	if err != nil {
		f.silent.Stop()
		return nil, fmt.Errorf("subscribe to a feed of %s: %w", stream, err)
	}
	err = f.sub.SetPendingLimits(-1, -1) // the flow control of the server bounds them
	if err == nil {
		cfg.DeliverSubject = inbox
		err = f.open(ctx, c, stream, cfg, filters)
	}
	if err != nil {
		close(began)
		f.Stop()
		return nil, fmt.Errorf("open a feed of %s: %w", stream, err)
	}
	if f.first == 0 {
		f.complete = true
		f.out <- nil
	}
	close(began)
	return f, nil
}

func (f *Feed) open(ctx context.Context, c *Conn, stream string, cfg jetstream.ConsumerConfig, filters []string) error {
	cfg.Name = rand.Text()
	cfg.AckPolicy, cfg.MaxDeliver, cfg.MemoryStorage, cfg.Replicas = jetstream.AckNonePolicy, 1, true, 1
	cfg.FlowControl, cfg.IdleHeartbeat = true, f.beat
	if len(filters) == 1 {
		cfg.FilterSubject = filters[0]
	} else {
		cfg.FilterSubjects = filters
	}
	made, err := c.js.CreatePushConsumer(ctx, stream, cfg)
	if err != nil {
		return err
	}
	info := made.CachedInfo()
	f.first = info.NumPending + info.Delivered.Consumer
	return nil
}

// Updates returns the messages. A nil message follows the last one that the stream had when the feed was opened. The
// channel stays open after the end of the feed: see Over.
func (f *Feed) Updates() <-chan *Message { return f.out }

// Over is closed when the feed has ended.
func (f *Feed) Over() <-chan struct{} { return f.over }

// Stop ends the feed. It may be called repeatedly.
func (f *Feed) Stop() {
	f.once.Do(func() {
		close(f.over)
		f.silent.Stop()
		if err := f.sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
			return // the subscription has ended with its connection
		}
	})
}

// take handles one message of the server. Only the subscription calls it, one message at a time.
func (f *Feed) take(m *nats.Msg) {
	f.silent.Reset(feedSilence * f.beat)
	if m.Header.Get("Status") != "" {
		f.control(m)
		return
	}
	meta, err := m.Metadata()
	if err != nil || meta.Sequence.Consumer != f.number+1 {
		f.Stop()
		return
	}
	f.number++
	if !f.put(&Message{Subject: m.Subject, Header: m.Header, Data: m.Data, Sequence: meta.Sequence.Stream, Time: meta.Timestamp}) {
		return
	}
	if !f.complete && (f.number >= f.first || meta.NumPending == 0) {
		f.complete = true
		f.put(nil)
	}
}

// control answers a request of the flow control, and compares a heartbeat with what has arrived.
func (f *Feed) control(m *nats.Msg) {
	if m.Reply != "" {
		if err := m.Respond(nil); err != nil {
			f.Stop()
		}
		return
	}
	if last := m.Header.Get("Nats-Last-Consumer"); last != "" {
		if n, err := strconv.ParseUint(last, 10, 64); err != nil || n != f.number {
			f.Stop()
		}
	}
}

// put hands a message on. While it waits for the reader, what the server sends waits as well, and does not count as silence.
func (f *Feed) put(m *Message) bool {
	select {
	case f.out <- m:
		return true
	default:
	}
	f.silent.Stop()
	select {
	case f.out <- m:
		f.silent.Reset(feedSilence * f.beat)
		return true
	case <-f.over:
		return false
	}
}
