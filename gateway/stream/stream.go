package stream

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Binding hears what becomes of the log that a stream shows. It is called by the log's
// goroutines: no method blocks, and none closes a stream.
type Binding interface {
	// Seen: the log exists.
	Seen(s *Stream)
	// Expired: the events before first are gone, and the stream continues with it.
	Expired(s *Stream, first uint64)
	// Failed: the stream shows nothing more.
	Failed(s *Stream, err error)
	// Deleted: the log was deleted, and the stream shows nothing more.
	Deleted(s *Stream)
	// Notice: the client is to be told something that is in no log.
	Notice(s *Stream, d event.NoticeData)
}

// Source is what all streams of a gateway share.
type Source struct {
	Log    *eventlog.Store
	Loader *Loader
	Logger zerolog.Logger
	Clock  func() time.Time
	Lagged func(Reason) // counts the times that a stream took fewer events than it was offered
}

// defaultSpare is the spare room of a stream of which nothing else is said.
const defaultSpare = 64 << 10

// Options say what a stream shows and to which connection.
type Options struct {
	Life      context.Context // of the connection
	Log       subject.Log
	Codec     Codec     // nil with another Projector
	Projector Projector // nil = that of the codec
	To        transport.Transport
	Slot      *Slot // of the connection, for stored data
	Binding   Binding

	Questions *Questions // of the connection; nil = they are not remembered
	Watches   *Watches   // of the connection, which list the stream from Watch to Close; nil = they do not

	Spare  int                                // bytes that may be kept for when the queue has room, besides an entry; 64 KiB
	Hides  func(event.Event) bool             // with Codec: the client shows the event itself; nil = none
	Pieces bool                               // with Codec: put parts of texts together
	Joins  func(event.MessageDeltaData) bool  // with Pieces: the parts that are put together; nil = none
	Shown  func(e *eventlog.Entry, held Held) // called for each entry that was taken, with the stream locked; may be nil
	Clear  func()                             // called when nothing that was taken waits for room, with the stream locked; may be nil
}

// Held hands on the connection's slot for stored data, if the entry that was shown has it:
// the caller calls release. nil = the entry has none.
type Held func() (release func())

// Stream shows a log on a connection. It is the sink of a viewer: when the queue of the
// transport is full the log continues without the stream, and brings it up to date when the
// queue has drained (Resume). All methods are safe for concurrent use.
type Stream struct {
	src *Source
	Options

	key        any             // under which an entry remembers the codec's messages
	build      func() any      // builds the messages of entry; made once
	entry      *eventlog.Entry // of build; callbacks come one at a time
	begun      partly          // the messages of the first event that the client has
	postscript postscript      // texts that are in no log

	mu     sync.Mutex // guards what follows: a sink may be called before Watch has returned
	v      *eventlog.Viewer
	at     eventlog.Cursor // after the last entry shown
	rest   queue           // beyond the room of the transport
	pieces *pieces         // puts texts together; nil = entries are shown one by one
	replay *replay         // until what was missed has been shown
	held   bool            // nothing is taken for now
	from   uint64          // the sequence after which it began
	stand  standing        // whether the run that is shown waits for a worker
	gone   bool            // the log was deleted, and the binding is to be told so
	over   bool            // closed
	got    *fetch          // the load of the next message; nil = none
	lag    *Lag            // nil: the stream does not lag

	ctx     context.Context //nolint:containedctx // the life of what is loaded; nil before anything is
	cancel  context.CancelFunc
	fetches sync.WaitGroup
}

// partly says that of the event with the sequence the first frames are not to be sent:
// the client has them.
type partly struct {
	seq    uint64
	frames int
}

// postscript is texts that follow the event with the sequence.
type postscript struct {
	seq   uint64
	texts []*transport.Message
}

// New returns a stream that shows nothing yet and ends with the life of its connection.
func New(src *Source, o Options) *Stream {
	s := &Stream{src: src, Options: o}
	if s.Spare == 0 {
		s.Spare = defaultSpare
	}
	if o.Pieces {
		s.pieces = &pieces{gathers: o.Joins}
	}
	if o.Projector == nil {
		c := (*coded)(s)
		s.key, s.build, s.Projector = frameKey(o.Codec.Name()), c.encode, c
	}
	return s
}

// Watch begins to show the log after the position, after what begin says; nil = nothing. No room is missed after begin, and
// nothing of the log comes before it.
func (s *Stream) Watch(after eventlog.Cursor, begin func(*Opening)) {
	s.mu.Lock()
	s.at, s.from = after, after.Seq
	if s.pieces != nil {
		s.pieces.upTo = after
	}
	if begin != nil {
		begin(&Opening{s})
	}
	s.mu.Unlock()
	s.Watches.Add(s)
	v := s.src.Log.Watch(s.Log, after, s)
	s.mu.Lock()
	s.v = v
	over := s.over
	s.mu.Unlock()
	if over { // closed by a callback that came before Watch had returned
		v.Close()
		return
	}
	v.Resume() // the queue may have been full before v was known
}

// Opening is a stream before it shows its log, within Watch.
type Opening struct{ s *Stream }

// Say queues a text.
func (o *Opening) Say(build func() []byte) { o.s.say(build) }

// Replay has what the client missed shown as r says.
func (o *Opening) Replay(r Replay) {
	o.s.replay = &replay{Replay: r, after: o.s.at.Seq}
	o.s.replay.close(o.s)
}

// Skip leaves out the first messages of the next event: the client has them.
func (o *Opening) Skip(messages int) { o.s.begun = partly{o.s.at.Seq + 1, messages} }

// Follow has texts follow the event with the sequence.
func (o *Opening) Follow(seq uint64, texts [][]byte) {
	o.s.postscript = postscript{seq: seq, texts: make([]*transport.Message, 0, len(texts))}
	for _, p := range texts {
		o.s.postscript.texts = append(o.s.postscript.texts, transport.Text(p))
	}
}

// Show queues the messages that build returns, which are in no log, after everything that the stream has taken: now, or when
// the queue has room. The stream is locked while build runs.
func (s *Stream) Show(build func() []*transport.Message) {
	s.mu.Lock()
	defer s.unlock()
	s.showLocked(build)
}

// unlock unlocks the stream after something that may have sent the last message.
func (s *Stream) unlock() {
	deleted := s.settled()
	s.mu.Unlock()
	if deleted {
		s.Binding.Deleted(s)
	}
}

// showLocked is Show for a caller that has locked.
func (s *Stream) showLocked(build func() []*transport.Message) {
	if s.over {
		return
	}
	s.settle()
	var ms []*transport.Message
	if s.src.safely(s.Log, func() { ms = build() }) {
		s.put(ms...)
		return
	}
	broken := fault.New(fault.Internal)
	if s.Codec == nil { // its messages depend on each other
		s.To.End(broken)
		return
	}
	s.put(transport.Text(s.Codec.Fail(broken, s.src.Clock())))
}

// Position returns the sequence of the last entry all of whose messages are in the queue of the transport.
func (s *Stream) Position() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.position()
}

// position is Position for a caller that has locked.
func (s *Stream) position() uint64 {
	if len(s.rest.behind) > 0 {
		return s.rest.behind[0]
	}
	return s.at.Seq
}

// Queued returns the sequence of the last entry that was taken, and whether all its
// messages are in the queue of the transport.
func (s *Stream) Queued() (seq uint64, complete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at.Seq, len(s.rest.ms) == 0
}

// Resume says that the queue of the transport has room again.
func (s *Stream) Resume() {
	s.mu.Lock()
	s.flush()
	s.regain()
	v := s.v
	s.unlock()
	if v != nil {
		v.Resume()
	}
}

// Close ends the stream. When it returns, the stream shows nothing more.
func (s *Stream) Close() {
	s.Watches.Remove(s, s.src.Logger)
	s.mu.Lock()
	v := s.v
	s.over, s.rest = true, queue{}
	if s.pieces != nil {
		s.pieces.flush()
	}
	cancel := s.cancel
	s.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	if v != nil {
		v.Close()
	}
	s.fetches.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passOn()()
}

// put queues messages after those that wait, now or when the queue has room. The caller has locked.
func (s *Stream) put(ms ...*transport.Message) {
	s.rest.add(s.at.Seq, ms...)
	s.flush()
}

// project returns the messages of the next entry. The caller has locked.
func (s *Stream) project(e *eventlog.Entry) []*transport.Message {
	ms := s.Projector.Project(e)
	if e.Sequence == s.postscript.seq && len(s.postscript.texts) > 0 {
		return slices.Concat(ms, s.postscript.texts)
	}
	return ms
}

// Truncated implements eventlog.Sink.
func (s *Stream) Truncated(first uint64) { s.Binding.Expired(s, first) }

// CaughtUp implements eventlog.Sink.
func (s *Stream) CaughtUp(uint64) {}

// Failed implements eventlog.Sink.
func (s *Stream) Failed(err error) { s.Binding.Failed(s, err) }
