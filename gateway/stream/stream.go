package stream

import (
	"context"
	"runtime/debug"
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

// Codec makes messages of events. It is an immutable value: two codecs with the same name
// make the same messages of an event.
type Codec interface {
	Name() string
	// Encode returns what the event becomes, each a text of its own, and nothing for an
	// event that is not shown.
	Encode(e event.Event) [][]byte
	// Fail returns the text that tells of a fault.
	Fail(f *fault.Fault, now time.Time) []byte
}

// Binding hears what becomes of the log that a stream shows. It is called by the log's
// goroutines: no method blocks, and none closes a stream.
type Binding interface {
	// Seen: the log exists.
	Seen(s *Stream)
	// Expired: the events before first are gone, and the stream goes on with it.
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
	Lagged func() // counts the times that a stream left live mode
}

// Options say what a stream shows and to which connection.
type Options struct {
	Life    context.Context // of the connection
	Log     subject.Log
	Codec   Codec
	To      transport.Transport
	Slot    *Slot // of the connection, for stored data
	Binding Binding

	Questions *Questions // of the connection; nil = they are not remembered

	Spare  int                                // bytes that may be kept for when the queue has room, besides a part of an entry
	Hides  func(event.Event) bool             // the client shows the event itself; nil = none
	Pieces bool                               // put parts of texts together
	Joins  func(event.MessageDeltaData) bool  // with Pieces: the parts that are put together; nil = none
	Shown  func(e *eventlog.Entry, held Held) // called for each entry that was taken, with the stream locked; may be nil
}

// Held hands on the connection's slot for stored data, if the entry that was shown has it:
// the caller calls release. nil = the entry has none.
type Held func() (release func())

// frameKey keeps the keys of remembered messages apart from all others.
type frameKey string

// Stream shows a log on a connection. It is the sink of a viewer: when the queue of the
// transport is full the log goes on without the stream, and brings it up to date when the
// queue has drained (Resume). All methods are safe for concurrent use.
type Stream struct {
	src *Source
	Options

	key        any             // under which an entry remembers the codec's messages
	build      func() any      // builds the messages of entry; made once
	entry      *eventlog.Entry // of build; callbacks come one at a time
	begun      partly          // the frames of the first event that the client has
	postscript postscript      // texts that are in no log

	mu     sync.Mutex // guards what follows: a sink may be called before Watch has returned
	v      *eventlog.Viewer
	at     eventlog.Cursor      // after the last entry shown
	rest   []*transport.Message // messages beyond the room of the queue
	pieces *pieces              // puts texts together; nil = entries are shown one by one
	replay *replay              // until what was missed has been shown
	held   bool                 // nothing is taken for now
	from   uint64               // the sequence after which it began
	stand  standing             // whether the run that is shown waits for a worker
	over   bool                 // closed
	got    *fetch               // the load of the next message; nil = none

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

// batches holds what several entries become, so that they leave in few writes.
var batches = sync.Pool{New: func() any { return new([]*transport.Message) }}

// New returns a stream that shows nothing yet and ends with the life of its connection.
func New(src *Source, o Options) *Stream {
	s := &Stream{src: src, Options: o, key: frameKey(o.Codec.Name())}
	if o.Pieces {
		s.pieces = &pieces{gathers: o.Joins}
	}
	s.build = s.encode
	return s
}

// Watch begins to show the log after the position.
func (s *Stream) Watch(after eventlog.Cursor) {
	s.mu.Lock()
	s.at, s.from = after, after.Seq
	s.mu.Unlock()
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

// WatchBehind is Watch with texts that come before anything of the log, and without the
// first skip messages of the next event. The texts wait for room like all that is shown.
func (s *Stream) WatchBehind(first [][]byte, after eventlog.Cursor, skip int) {
	s.mu.Lock()
	s.begun = partly{after.Seq + 1, skip}
	for _, p := range first {
		s.rest = append(s.rest, transport.Text(p))
	}
	s.flush()
	s.mu.Unlock()
	s.Watch(after)
}

// SayBehind has texts follow the event with the sequence. It is called before the stream shows anything.
func (s *Stream) SayBehind(seq uint64, texts [][]byte) {
	s.postscript = postscript{seq: seq, texts: make([]*transport.Message, 0, len(texts))}
	for _, p := range texts {
		s.postscript.texts = append(s.postscript.texts, transport.Text(p))
	}
}

// WatchAfter is Watch behind what first says. No room is missed after first, and nothing
// of the log comes before it.
func (s *Stream) WatchAfter(after eventlog.Cursor, first func(*Opening)) {
	s.mu.Lock()
	s.at = after
	if s.pieces != nil {
		s.pieces.upTo = after
	}
	first(&Opening{s})
	s.mu.Unlock()
	s.Watch(after)
}

// Opening is a stream before it shows its log, within WatchAfter.
type Opening struct{ s *Stream }

// Position returns the sequence of the last entry that was shown.
func (s *Stream) Position() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at.Seq
}

// Queued returns the sequence of the last entry that was taken, and whether all its
// messages are in the queue of the transport.
func (s *Stream) Queued() (seq uint64, complete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at.Seq, len(s.rest) == 0
}

// Resume says that the queue of the transport has room again.
func (s *Stream) Resume() {
	s.mu.Lock()
	s.flush()
	v := s.v
	s.mu.Unlock()
	if v != nil {
		v.Resume()
	}
}

// flush queues what was left over and reports whether nothing is left. The caller
// has locked.
func (s *Stream) flush() bool {
	if len(s.rest) > 0 {
		s.rest = s.rest[s.To.Send(s.rest...):]
	}
	return len(s.rest) == 0
}

// Close ends the stream. When it returns, the stream shows nothing more.
func (s *Stream) Close() {
	s.mu.Lock()
	v := s.v
	s.over, s.rest = true, nil
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

func (s *Stream) send(frames []*transport.Message) int {
	if len(frames) == 0 {
		return 0
	}
	return s.To.Send(frames...)
}

// took returns of how many entries the first frames have been sent, and keeps what
// is left of the last of them.
func (s *Stream) took(batch []*eventlog.Entry, sent int) int {
	for i, e := range batch {
		frames := s.frames(e)
		if sent == 0 && len(frames) > 0 {
			return i + s.keep(batch[i:])
		}
		s.take(e)
		if sent < len(frames) {
			s.rest = slices.Clone(frames[sent:])
			return i + 1
		}
		sent -= len(frames)
	}
	return len(batch)
}

// keep takes entries that the queue had no room for, within the stream's own spare
// room, and returns how many. So every stream of a connection has something to send when
// the queue has room again, however long it takes to read on in its log.
func (s *Stream) keep(batch []*eventlog.Entry) (n int) {
	for kept := 0; n < len(batch) && kept < s.Spare; n++ {
		for _, p := range s.frames(batch[n]) {
			s.rest = append(s.rest, p)
			kept += len(p.Data)
		}
		s.take(batch[n])
	}
	return n
}

func (s *Stream) take(e *eventlog.Entry) {
	s.at = e.Cursor()
	if s.Shown == nil {
		return
	}
	var held Held
	if s.got != nil && s.got.seq == e.Sequence {
		held = s.passOn
	}
	s.Shown(e, held)
}

func (s *Stream) frames(e *eventlog.Entry) []*transport.Message {
	frames := s.framesOf(e)
	if e.Sequence == s.postscript.seq && len(s.postscript.texts) > 0 {
		return slices.Concat(frames, s.postscript.texts)
	}
	return frames
}

func (s *Stream) framesOf(e *eventlog.Entry) []*transport.Message {
	s.entry = e
	if late(e.Event, s.src.Clock) || s.Hides != nil && s.Hides(e.Event) {
		return nil
	}
	frames, _ := e.Memo(s.key, s.build).([]*transport.Message)
	if e.Sequence == s.begun.seq {
		return frames[min(s.begun.frames, len(frames)):]
	}
	return frames
}

// late reports whether the event is a message between clients that was to be shown
// by an earlier time.
func late(e event.Event, clock func() time.Time) bool {
	if e.Type != event.InboxMessaged {
		return false
	}
	m, err := event.As[event.InboxMessagedData](e)
	return err == nil && !m.ExpiresAt.IsZero() && clock().After(m.ExpiresAt)
}

// encode builds the messages of an entry.
func (s *Stream) encode() any {
	var out []*transport.Message
	e := s.entry.Event
	ok := s.src.safely(s.Log, func() {
		texts := s.Codec.Encode(e)
		out = make([]*transport.Message, 0, len(texts))
		for i, p := range texts {
			at := transport.Position{Seq: e.Sequence}
			if i < len(texts)-1 {
				at.Part = i + 1
			}
			out = append(out, transport.New(p, string(e.Type), at))
		}
	})
	if !ok {
		out = []*transport.Message{transport.Text(s.Codec.Fail(fault.New(fault.Internal), s.src.Clock()))}
	}
	return out
}

// safely calls a codec for a log and reports whether it returned: one that panics
// must not take every gateway down with the log that it cannot read.
func (s *Source) safely(log subject.Log, encode func()) bool { return Safely(s.Logger, log, encode) }

// Safely calls encode for a log and reports whether it returned without a panic.
func Safely(logger zerolog.Logger, log subject.Log, encode func()) (ok bool) {
	defer func() {
		if r := recover(); r != nil {
			logger.Error().Interface("panic", r).Bytes("stack", debug.Stack()).
				Stringer("log", log).Msg("failed to encode event")
			ok = false
		}
	}()
	encode()
	return true
}

// Truncated implements eventlog.Sink.
func (s *Stream) Truncated(first uint64) { s.Binding.Expired(s, first) }

// CaughtUp implements eventlog.Sink.
func (s *Stream) CaughtUp(uint64) {}

// Failed implements eventlog.Sink.
func (s *Stream) Failed(err error) { s.Binding.Failed(s, err) }

// fetch is an entry of a stream whose data is stored as an object. The log goes on without
// the stream until the object is there, as it does for a socket that is full.
type fetch struct {
	seq     uint64
	entry   *eventlog.Entry // with the data; nil until it is there
	release func()          // gives the connection's slot back; nil = it was, or is to be
}

// passOn returns what gives back the connection's slot, which the caller has to
// call, if the stream has it. The stream is locked.
func (s *Stream) passOn() (release func()) {
	if s.got == nil || s.got.release == nil {
		return func() {}
	}
	release, s.got.release = s.got.release, nil
	return release
}

// pieces puts consecutive deltas of one text together. A piece ends with a sentence, with
// the stretch of pieceWait that the time of its first delta lies in, and before anything
// else that is shown. So the pieces of a log are the same whenever and however it is read,
// but that a reader of the newest events is shown one in two parts if the rest of it is
// announced later than patience allows. The pieces after it are the same again.
type pieces struct {
	gathers func(event.MessageDeltaData) bool // nil: none

	open  []*eventlog.Entry // the piece that has been begun
	of    delta
	bytes int
	upTo  eventlog.Cursor // the last entry taken, shown or not
	round int             // counts the pieces that were begun
	timer *time.Timer
}

// delta is a part of a text.
type delta struct {
	gathers bool       // it is to be put together with others
	of      event.Type // of a message's text or of reasoning
	bytes   int
	ends    bool                   // with a sentence
	head    event.MessageDeltaData // all but the text
}

// Keys of what entries remember: a delta of a codec, and the piece of the deltas from a
// sequence to the entry.
type (
	deltaKey string
	pieceKey uint64
)

// flush ends the piece that has been begun and returns it: one entry, unless its deltas
// cannot be merged. All who show the same deltas share it.
func (p *pieces) flush() []*eventlog.Entry {
	run := p.open
	p.open = nil
	if p.timer != nil {
		p.timer.Stop()
	}
	if len(run) < 2 {
		return run
	}
	merged, _ := run[len(run)-1].Memo(pieceKey(run[0].From), func() any { return eventlog.Merge(run) }).([]*eventlog.Entry)
	return merged
}

// Replay says how a client is shown what it missed: everything up to Head, the end of the
// log when the client came.
type Replay struct {
	Head  uint64
	Merge bool // consecutive parts of a text as one
	// Batch returns one text for many events; nil = each has its own.
	Batch func([]event.Event) []byte
	// Replayed returns the text that ends the replay: count events up to at were shown.
	Replayed func(count int, at eventlog.Cursor) []byte
}

// replay is a Replay that goes on.
type replay struct {
	Replay
	after uint64 // where the client stood
}

// standing is what a stream knows of the run that it shows, as far as it has shown it.
type standing struct {
	waits    bool // for a worker: a run is active and awaits no answer of people
	told     bool // that no worker is available
	known    bool // an event has said whether it waits
	recalled bool // the events before those that were shown have been asked
}
