package stream

import (
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Reason says why a viewer lags.
type Reason string

// The reasons.
const (
	QueueFull Reason = "queue_full" // the client does not read as fast as events come
	Loading   Reason = "loading"    // stored data of the next event is being loaded
	Expired   Reason = "expired"    // the client is being shown what is left of an expired history
)

// Reasons returns all of them.
func Reasons() []Reason { return []Reason{QueueFull, Loading, Expired} }

// Lag is the time in which a viewer is not live. Without a reason the viewer does not lag.
type Lag struct {
	Reason Reason // the latest one
	Since  time.Time
}

// State is what a viewer shows, and how far it has come.
type State struct {
	Log      subject.Log // zero: the announcements of the tenant
	Position uint64      // the last event all of whose messages are in the queue of the client
	End      uint64      // the newest event of the log that this process knows
	Waiting  int         // bytes beyond the room of the queue
	Missed   int         // announcements that the client did not get, and has not been told of
	Lag      Lag
}

// Behind returns the number of events that the client is behind.
func (s State) Behind() uint64 { return max(s.End, s.Position) - s.Position }

// Watcher is a viewer of a client: a stream, or the announcements.
type Watcher interface {
	// State may be called at any time, and does not block.
	State() State
}

// lagGrace is how long a viewer lags before the log of the process says so: a client reads a burst of events in less time.
const lagGrace = time.Second

// Watches are the viewers of one connection. The zero value has none. All methods are safe for concurrent use, and work on nil.
type Watches struct {
	mu  sync.Mutex
	of  zerolog.LogObjectMarshaler // the connection
	all []watch
}

type watch struct {
	Watcher
	told Lag // in the last line of the log; without a reason none is due
}

// Of sets the fields that name the connection in lines of the log. It is called before the first viewer is added.
func (w *Watches) Of(connection zerolog.LogObjectMarshaler) { w.of = connection }

// Add lists a viewer that is open.
func (w *Watches) Add(v Watcher) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, watch{Watcher: v})
}

// Remove takes off a viewer that is closed. The log says so if the viewer lagged.
func (w *Watches) Remove(v Watcher, logger zerolog.Logger) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.all, func(one watch) bool { return one.Watcher == v })
	if i < 0 {
		return
	}
	if w.all[i].told.Reason != "" {
		w.say(logger, "lagging viewer closed", v.State(), w.all[i].told)
	}
	w.all = slices.Delete(w.all, i, i+1)
}

// Tick logs which viewers have begun to lag, and which have caught up, once for each time that one lags. It is called about once a
// second.
func (w *Watches) Tick(now time.Time, logger zerolog.Logger) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.all {
		one := &w.all[i]
		s := one.State()
		switch lags := s.Lag.Reason != ""; {
		case lags && one.told.Reason == "" && now.Sub(s.Lag.Since) >= lagGrace:
			one.told = s.Lag
			w.say(logger, "viewer lags", s, s.Lag)
		case !lags && one.told.Reason != "":
			w.say(logger, "viewer caught up", s, one.told)
			one.told = Lag{}
		}
	}
}

// say writes a line about a viewer. The caller has locked.
func (w *Watches) say(logger zerolog.Logger, message string, s State, l Lag) {
	e := logger.Info()
	if w.of != nil {
		e.EmbedObject(w.of)
	}
	if s.Log != (subject.Log{}) {
		e.Stringer("log", s.Log).Uint64("seq", s.Position).Uint64("events_behind", s.Behind()).Int("bytes_waiting", s.Waiting)
	} else {
		e.Int("announcements_missed", s.Missed)
	}
	e.Str("reason", string(l.Reason)).Time("since", l.Since).Msg(message)
}

// States returns what the viewers show.
func (w *Watches) States() []State {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]State, len(w.all))
	for i, one := range w.all {
		out[i] = one.State()
	}
	return out
}

// State implements Watcher.
func (s *Stream) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.regain()
	out := State{Log: s.Log, Position: s.position()}
	if s.v != nil {
		out.End = s.v.End()
	}
	for _, m := range s.rest.ms {
		out.Waiting += len(m.Data)
	}
	if s.lag != nil {
		out.Lag = *s.lag
	}
	return out
}

// falls notes that the stream has taken fewer events than it was offered. The caller has locked.
func (s *Stream) falls(why Reason) {
	s.src.Lagged(why)
	if s.lag == nil {
		s.lag = &Lag{Since: s.src.Clock()}
	}
	s.lag.Reason = why
}

// regain ends the lag of a stream that has taken all of its log, none of which waits for room. The caller has locked.
func (s *Stream) regain() {
	if s.lag != nil && s.v != nil && len(s.rest.ms) == 0 && s.reached() >= s.v.End() {
		s.lag = nil
	}
}
