package thread

import (
	"context"
	"strings"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"

	"github.com/waggle-dev/waggle/gateway/agui/fold"
	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Stream shows a thread, or one run of it, on a response. Its opening runs on the goroutine of the request: a snapshot of the
// thread or a position in its log, and the wait for what comes of a command. From Begin on, a stream of the log brings the
// rest, with this one as its projector. Room and Close may be called concurrently.
type Stream struct {
	t  *Threads
	by *edge.Client
	at Place

	ctx     context.Context //nolint:containedctx // the life of the stream
	cancel  context.CancelFunc
	log     *stream.Stream // nil before the log is read
	counted bool           // among the viewers
	cancels bool           // the run is stopped when its last viewer has gone
	size    int            // of the thread at its end

	// The log is locked while what follows is used, once it is read.

	run     string // the run that is shown, and the stretches that follow it by themselves; empty = the thread
	called  string // the name of that run for the client; empty = its own
	all     bool   // the thread is shown
	follows bool   // over all later runs
	thread  *fold.Thread
	after   eventlog.Cursor      // behind which the log is read
	skip    int                  // frames of the next event that the client has
	over    bool                 // nothing follows
	ending  *fault.Fault         // with which the response ends, after all that is shown; nil = it continues
	begun   bool                 // a frame was shown
	edited  bool                 // the client's history is not that of the thread
	answers *answers             // that the client gives; nil = none
	notices []map[string]any     // about the request, after the first frame
	part    *answer.Part         // the room of first; nil: it needs none, or the response has taken it over
	first   []*transport.Message // of the opening
	live    bool                 // the opening is over
	heard   func(event.Event, error)
}

var (
	_ stream.Projector = (*Stream)(nil)
	_ stream.Binding   = (*Stream)(nil)
)

// newStream returns a stream for a client that ends with ctx, or with Close.
func newStream(ctx context.Context, t *Threads, c *edge.Client, at Place) *Stream {
	s := &Stream{t: t, by: c, at: at}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s
}

// Over reports whether nothing follows the position of the client: it gets an answer without a body.
func (s *Stream) Over() (nothing bool) {
	s.locked(func() { nothing = s.over && len(s.first) == 0 })
	return nothing
}

// Begin ends the opening: the response gets what it has, and then the log, until it is over.
func (s *Stream) Begin() {
	var stop func(context.Context)
	if s.cancels {
		stop = s.abandon
	}
	s.counted = true
	s.t.viewers.enter(s.at.Log, s.run, stop)
	reads := s.log != nil
	if !reads {
		s.log = s.reader()
	}
	s.log.Show(func() []*transport.Message {
		first := s.first
		s.live, s.first = true, nil
		if s.part != nil {
			s.part.Shrink(bytesOf(first))
		}
		return first
	})
	if !reads && !s.over {
		s.log.Watch(s.after, nil)
	}
}

func bytesOf(ms []*transport.Message) (n int) {
	for _, m := range ms {
		n += len(m.Data)
	}
	return n
}

// reader returns a stream of the log.
func (s *Stream) reader() *stream.Stream {
	return stream.New(s.t.g.Streams, stream.Options{
		Life: s.ctx, Log: s.at.Log, Projector: s, To: s.at.To, Slot: stream.NewSlot(), Binding: s, Clear: s.clear,
		Watches: s.by.Watches(),
	})
}

// listen begins to read the log after the position of the stream.
func (s *Stream) listen() {
	if s.log == nil {
		s.log = s.reader()
		s.log.Watch(s.after, nil)
	}
}

// locked calls f with the log locked.
func (s *Stream) locked(f func()) {
	if s.log == nil {
		f()
		return
	}
	s.log.Show(func() []*transport.Message {
		f()
		return nil
	})
}

// forms is how often a prelude is in memory while it is made: as JSON, as a message, and as the response writes it.
const forms = 3

// reserve takes room for the prelude of a thread of the size, or for folding it again. It is called before anything is done for the
// client: one that is refused sends the same request again.
func (s *Stream) reserve(size int) (err error) {
	if s.part == nil {
		s.part, err = s.by.Room(s.ctx, forms*size)
	}
	return err
}

// clear gives the room of the prelude to the response, which has all of it, and ends a response to which nothing comes.
func (s *Stream) clear() {
	if s.live && s.part != nil {
		s.at.To.Written(s.part.Leave)
		s.part = nil
	}
	if s.live && s.ending != nil {
		s.at.To.End(s.ending)
	}
}

// Room implements watch.Binding.
func (s *Stream) Room() { s.log.Resume() }

// Close implements watch.Binding.
func (s *Stream) Close() {
	s.cancel()
	if s.log != nil {
		s.log.Close()
	}
	s.answers.close()
	if s.part != nil {
		s.part.Leave()
		s.part = nil
	}
	if s.counted {
		s.counted = false
		s.t.viewers.leave(s.at.Log, s.run, s.over, s.left())
	}
}

// left reports whether the stream has ended because its client has gone.
func (s *Stream) left() bool {
	code := s.at.To.Code()
	return code == "" || code == fault.PeerStuck
}

// abandon stops the run, which has no viewer any more.
func (s *Stream) abandon(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.t.maxWait)
	defer cancel()
	if err := s.t.Cancel(ctx, s.by, s.at, wire.Cancel{RunID: s.run, Reason: "disconnected"}); err != nil {
		s.t.g.Logger.Debug().Err(err).Msg("failed to cancel abandoned run")
	}
}

// Seen implements stream.Binding.
func (*Stream) Seen(*stream.Stream) {}

// Expired implements stream.Binding: the fold continues with what the log has.
func (*Stream) Expired(*stream.Stream, uint64) {}

// Deleted implements stream.Binding. The tombstone has ended the response.
func (*Stream) Deleted(*stream.Stream) {}

// Notice implements stream.Binding: clients of threads are told of no workers.
func (*Stream) Notice(*stream.Stream, event.NoticeData) {}

// Failed implements stream.Binding.
func (s *Stream) Failed(log *stream.Stream, err error) {
	err = stream.Gone(err)
	log.Show(func() []*transport.Message {
		s.over, s.ending = true, fault.From(err, "")
		s.hear(event.Event{}, err)
		return nil
	})
}

// Project implements stream.Projector.
func (s *Stream) Project(e *eventlog.Entry) (ms []*transport.Message) {
	if s.over {
		return nil
	}
	ended := s.all && (e.Type == event.SessionClosed || e.Type == event.TeamClosed) || e.Type.Tombstone()
	switch ok := stream.Safely(s.t.g.Logger, s.at.Log, func() { ms = s.messages(e) }); {
	case !ok:
		s.over, s.ending, ms = true, fault.New(fault.Internal), nil
	case ended:
		s.over, s.ending = true, fault.New(fault.SessionClosed)
	}
	ms = s.opened(ms)
	s.hear(e.Event, nil)
	return ms
}

// opened keeps messages of the opening, and returns all others.
func (s *Stream) opened(ms []*transport.Message) []*transport.Message {
	if s.live {
		return ms
	}
	s.first = append(s.first, ms...)
	return nil
}

// hear tells the opening what has come, if it waits.
func (s *Stream) hear(e event.Event, failed error) {
	if s.heard != nil {
		s.heard(e, failed)
	}
}

// direct takes a direct message.
func (s *Stream) direct(e event.Event) {
	s.log.Show(func() []*transport.Message {
		s.answers.note(e)
		ms := s.opened(s.refused(e))
		s.hear(e, nil)
		return ms
	})
}

// await sends what the client asks for, and reads the log and direct messages until is has what it waits for, or an error. Their
// frames are the first of the stream. The log is locked while is runs.
func (s *Stream) await(ctx context.Context, send func() error, is func(event.Event) (bool, error)) error {
	done := make(chan error, 1)
	s.listen()
	s.locked(func() {
		s.heard = func(e event.Event, err error) {
			ok := err != nil
			if !ok {
				ok, err = is(e)
			}
			if ok || err != nil {
				s.heard = nil
				done <- err
			}
		}
		if s.ending != nil { // nothing comes
			s.hear(event.Event{}, s.ending)
		}
	})
	if err := send(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.t.maxWait, fault.Newf(fault.Overloaded, "The session service did not respond. Send the same request again."))
	defer cancel()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// framesKey names what viewers share of an entry: those whose threads are alike.
type framesKey struct {
	variant fold.Variant
	first   uint64
}

// frames folds an entry and returns its frames. All viewers together decode and encode it once.
func (s *Stream) frames(e *eventlog.Entry) []fold.Frame {
	var mine *fold.Shared
	shared, _ := e.Memo(framesKey{s.at.Variant, s.thread.Beginning()}, func() any {
		mine = s.thread.Share(e.Event)
		return mine
	}).(*fold.Shared)
	if mine != nil {
		return mine.Frames
	}
	return s.thread.Like(e.Event, shared)
}

// messages folds an entry and returns what the stream shows of it.
func (s *Stream) messages(entry *eventlog.Entry) []*transport.Message {
	e, frames := entry.Event, s.frames(entry)
	s.answers.note(e)
	var out []*transport.Message
	ready := s.ready(entry, frames)
	for i, f := range frames {
		if i < s.skip || s.over || !s.shows(f) {
			continue
		}
		m := ready[i]
		if m == nil {
			m = transport.New(f.Data, "", placeOf(i, frames, e.Sequence))
		}
		if f.Ends && s.last(f) {
			s.over, m.Final = true, true
		}
		out = append(out, m)
		out = append(out, s.late()...)
	}
	s.skip = 0
	return out
}

// readyKey names the messages that viewers share of an entry.
type readyKey struct{ framesKey }

// ready returns the messages of those frames that all viewers have alike; the others are nil. Many slow readers keep them once.
func (s *Stream) ready(e *eventlog.Entry, frames []fold.Frame) []*transport.Message {
	ready, _ := e.Memo(readyKey{framesKey{s.at.Variant, s.thread.Beginning()}}, func() any {
		list := make([]*transport.Message, len(frames))
		for i, f := range frames {
			if !f.Own && !f.Ends {
				list[i] = transport.New(f.Data, "", placeOf(i, frames, e.Event.Sequence))
			}
		}
		return list
	}).([]*transport.Message)
	return ready
}

// placeOf returns the position after a frame of an event.
func placeOf(i int, frames []fold.Frame, seq uint64) transport.Position {
	at := transport.Position{Seq: seq}
	if i < len(frames)-1 {
		at.Part = i + 1
	}
	return at
}

// shows reports whether the stream has the frame.
func (s *Stream) shows(f fold.Frame) bool {
	if s.all {
		return f.Shown != fold.OwnStream
	}
	return f.Shown != fold.ThreadStream && (f.Stretch == s.run || strings.HasPrefix(f.Stretch, s.run+"~"))
}

// last reports whether nothing follows the end of a stretch.
func (s *Stream) last(fold.Frame) bool {
	return !s.follows && s.answers.settled()
}

// show adds frames that stand for the log up to the position of the stream. The last one has the position.
func (s *Stream) show(frames []fold.Frame) {
	s.edited = false // they have all messages
	for i, f := range frames {
		at := transport.Position{}
		if i == len(frames)-1 {
			at.Seq = s.thread.Seq()
		}
		m := transport.New(f.Data, "", at)
		if f.Ends && s.last(f) && i == len(frames)-1 {
			s.over, m.Final = true, true
		}
		s.first = append(s.first, m)
		s.first = append(s.first, s.late()...)
	}
}

// prelude shows the thread where it stands.
func (s *Stream) prelude() {
	s.name()
	s.show(s.thread.Prelude())
}

// name has the thread call the run that is shown as the client does.
func (s *Stream) name() {
	if s.called != "" && s.thread.Newest() == s.run {
		s.thread.Call(s.called)
	}
}

// place takes the run that is shown in place of one that has joined it.
func (s *Stream) place(base *fold.Thread) (found fold.Stretch, known bool) {
	if found, known = base.Stretch(s.run); known && found.Joins != "" {
		s.called, s.run = s.run, found.Joins
		found, known = base.Stretch(s.run)
	}
	return found, known
}

// finish ends the stream behind what it has, or at once.
func (s *Stream) finish() {
	s.over = true
	if n := len(s.first); n > 0 {
		s.first[n-1].Final = true
	}
}

// refused returns what the stream shows of a direct message: nothing but refusals of the client's answers.
func (s *Stream) refused(e event.Event) []*transport.Message {
	d, mine := s.answers.refuse(e)
	if !mine || !s.begun {
		return nil
	}
	return []*transport.Message{transport.New(s.thread.Custom(wire.CustomAnswerRefused, refusal(d)), "", transport.Position{})}
}

// remark has the stream say what the request has that cannot be used.
func (s *Stream) remark(m fold.Meaning) {
	s.edited = m.Edited
	for _, i := range m.Unknown {
		s.notices = append(s.notices, map[string]any{
			"level": "warning", "code": string(fault.InputNotFound), "interruptId": i, "message": "This thread has no such question.",
		})
	}
	for _, part := range m.Unoffered {
		s.notices = append(s.notices, map[string]any{
			"level": "warning", "code": string(fault.InvalidField), "part": part, "message": "Agents of the swarm and teams are not given the " + part + " of a request.",
		})
	}
	for _, kind := range m.Skipped {
		s.notices = append(s.notices, map[string]any{
			"level": "warning", "code": string(fault.InvalidField), "part": kind,
			"message": "A part of the message is not handed on: models take text, images (PNG, JPEG, GIF, WebP), and the addresses (http, https) of images and files.",
		})
	}
}

// late are the remarks that follow the first frame: about the request, and about answers that were refused before the run continued
// with others.
func (s *Stream) late() (out []*transport.Message) {
	if s.begun {
		return nil
	}
	s.begun = true
	for _, n := range s.notices {
		out = append(out, transport.New(s.thread.Custom(wire.CustomNotice, n), "", transport.Position{}))
	}
	if s.edited {
		out = append(out, transport.New(s.thread.Snapshot(), "", transport.Position{}))
	}
	if s.answers != nil {
		for _, d := range s.answers.refused {
			out = append(out, transport.New(s.thread.Custom(wire.CustomAnswerRefused, refusal(d)), "", transport.Position{}))
		}
	}
	return out
}
