package chat

import (
	"context"

	"github.com/waggle-dev/waggle/gateway/aisdk/fold"
	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// Response is what a stream is shown on.
type Response interface {
	transport.Transport
	// Written has f called once all that is queued has been written, or the response is over.
	Written(f func())
}

// Stream shows one run of a chat on a response, up to where it has ended, or waits for answers. Its opening runs on the goroutine of
// the request. From Begin on, a stream of the log brings the rest, with this one as its projector. Room and Close may be called
// concurrently.
type Stream struct {
	t  *Chats
	by *edge.Client
	at Place

	ctx    context.Context //nolint:containedctx // the life of the stream
	cancel context.CancelFunc
	log    *stream.Stream // nil before Begin

	// The log is locked while what follows is used, once it is read.

	chat  *fold.Chat
	from  eventlog.Cursor // the log is read after it
	run   string          // that is shown
	least int             // the stretch of the run with whose end the stream may end
	skip  int             // frames of the next event that the client has
	over  bool            // nothing follows
	ends  *fault.Fault    // with which the response ends, after all that is shown
	first []*transport.Message
	part  *answer.Part // the room of first; nil: it needs none, or the response has taken it over
}

var (
	_ stream.Projector = (*Stream)(nil)
	_ stream.Binding   = (*Stream)(nil)
)

// newStream returns a stream for a client that ends with ctx, or with Close.
func newStream(ctx context.Context, t *Chats, c *edge.Client, at Place) *Stream {
	s := &Stream{t: t, by: c, at: at}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s
}

// Over reports whether nothing follows the position of the client: it gets an answer without a body.
func (s *Stream) Over() bool { return s.over && len(s.first) == 0 }

// Begin ends the opening: the response gets what it has, and then the log, until it is over.
func (s *Stream) Begin() {
	s.log = stream.New(s.t.g.Streams, stream.Options{
		Life: s.ctx, Log: s.at.Log, Projector: s, To: s.at.To, Slot: stream.NewSlot(), Binding: s, Clear: s.clear, Watches: s.by.Watches(),
	})
	over := s.over
	s.log.Show(func() []*transport.Message {
		first := s.first
		s.first = nil
		if s.part != nil {
			size := 0
			for _, m := range first {
				size += len(m.Data)
			}
			s.part.Shrink(size)
		}
		return first
	})
	if !over {
		s.log.Watch(s.from, nil)
	}
}

// forms is how often a prelude is in memory while it is made: as JSON, as a message, and as the response writes it.
const forms = 3

// reserve takes room for the message of a chat of the size.
func (s *Stream) reserve(size int) (err error) {
	if s.part == nil {
		s.part, err = s.by.Room(s.ctx, forms*size)
	}
	return err
}

// clear gives the room of the prelude to the response, which has all of it, and ends a response to which nothing comes.
func (s *Stream) clear() {
	if s.first == nil && s.part != nil {
		s.at.To.Written(s.part.Leave)
		s.part = nil
	}
	if s.ends != nil {
		End(s.at.To, s.ends)
	}
}

// Room implements events.Binding.
func (s *Stream) Room() { s.log.Resume() }

// Close implements events.Binding.
func (s *Stream) Close() {
	s.cancel()
	if s.log != nil {
		s.log.Close()
	}
	if s.part != nil {
		s.part.Leave()
		s.part = nil
	}
}

// Seen implements stream.Binding.
func (*Stream) Seen(*stream.Stream) {}

// Expired implements stream.Binding: the fold continues with what the log has.
func (*Stream) Expired(*stream.Stream, uint64) {}

// Deleted implements stream.Binding. The tombstone has ended the response.
func (*Stream) Deleted(*stream.Stream) {}

// Notice implements stream.Binding.
func (s *Stream) Notice(log *stream.Stream, d event.NoticeData) {
	log.Show(func() []*transport.Message {
		if s.over {
			return nil
		}
		return []*transport.Message{told(fold.Chunk{
			Type: fold.DataNotice, Transient: true, Data: fold.Notice{Level: d.Level, Code: d.Code, Message: d.Message},
		})}
	})
}

// Failed implements stream.Binding.
func (s *Stream) Failed(log *stream.Stream, err error) {
	err = stream.Gone(err)
	log.Show(func() []*transport.Message {
		s.over, s.ends = true, fault.From(err, "")
		return nil
	})
}

// Project implements stream.Projector.
func (s *Stream) Project(e *eventlog.Entry) (ms []*transport.Message) {
	if s.over {
		return nil
	}
	ended := e.Type == event.SessionClosed || e.Type.Tombstone()
	switch ok := stream.Safely(s.t.g.Logger, s.at.Log, func() { ms = s.messages(e) }); {
	case !ok:
		s.over, s.ends, ms = true, fault.New(fault.Internal), nil
	case ended && !s.over:
		s.over, s.ends = true, fault.New(fault.SessionClosed)
	}
	return ms
}

// messages folds an entry and returns what the stream shows of it.
func (s *Stream) messages(entry *eventlog.Entry) (out []*transport.Message) {
	frames := s.chat.Next(entry.Event)
	for i, f := range frames {
		if i < s.skip || f.Run != s.run {
			continue
		}
		at := transport.Position{Seq: entry.Event.Sequence}
		if i < len(frames)-1 {
			at.Part = i + 1
		}
		out = append(out, transport.New(f.Data, "", at))
		if f.Ends && f.Stretch >= s.least {
			s.over = true
			out = append(out, done(at))
			break
		}
	}
	s.skip = 0
	return out
}

// show adds frames that stand for the log up to the position of the stream. The last one has the position.
func (s *Stream) show(frames []fold.Frame) {
	for i, f := range frames {
		at := transport.Position{}
		if i == len(frames)-1 {
			at.Seq = s.from.Seq
		}
		s.first = append(s.first, transport.New(f.Data, "", at))
	}
}

// finish ends the stream after what it has.
func (s *Stream) finish() {
	s.over = true
	s.first = append(s.first, done(transport.Position{}))
}

// done is the last message of a stream.
func done(at transport.Position) *transport.Message {
	m := transport.New([]byte(fold.Done), "", at)
	m.Final = true
	return m
}

// told returns a chunk that is in no log.
func told(c fold.Chunk) *transport.Message {
	data, _ := plainjson.Marshal(c) //nolint:errchkjson // a chunk has no values that JSON lacks
	return transport.New(data, "", transport.Position{})
}

// resumable reports whether the run of a response that ends with the code continues, and can be shown.
func resumable(code fault.Code) bool {
	switch code {
	case fault.Draining, fault.Expired, fault.PeerStuck:
		return true
	}
	return false
}

// End ends a response before its run is shown to its end: clients that do not resume take the end of a body for that of the answer.
func End(to transport.Transport, f *fault.Fault) {
	to.Force(told(fold.Chunk{Type: fold.Error, ErrorText: f.Message, Code: string(f.Code), Resumable: resumable(f.Code)}))
	to.End(f)
}
