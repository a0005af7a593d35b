package gateway

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/gateway/admission"
	"github.com/waggle-dev/waggle/gateway/arrival"
	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/events"
	"github.com/waggle-dev/waggle/gateway/transport/sse"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// protocolEvents is the name of streams of events in metrics and in the audit log.
const protocolEvents = "events"

// Names of the streams of conversations there.
const (
	protocolThreads = "agui"
	protocolChats   = "aisdk"
)

// topicsQuiet is the longest pause between two signs of life on a stream with topics: it is all that a browser has, which has to
// notice soon that it is dead.
const topicsQuiet = 10 * time.Second

// queryTypes is the parameter that names the types of announcements to be shown.
const queryTypes = "types"

// streams shows logs, announcements and threads as server-sent events, or logs as they are now as lines.
type streams struct {
	*answers

	door          *door
	conns         *connections
	shared        *binding.Gateway
	announcements *events.Announcements
	auth          auth.Authenticator
	cfg           Config
	sent          sse.Stats
	ctx           context.Context //nolint:containedctx // of the gateway, which ends streams, too
}

// eventStream is one stream of server-sent events. Its client asks for nothing on it.
type eventStream struct {
	s        *streams
	protocol string
	nothing  bool // nothing is to be streamed
	to       *sse.Response
	pass     *admission.Pass
	client   edge.Client
	shown    events.Binding
	begun    time.Time
	gone     chan struct{} // closed when the stream has ended
}

var (
	_ connection  = (*eventStream)(nil)
	_ sse.Handler = (*eventStream)(nil)
)

// serveEvents returns the handler of streams that show what bind binds them to. It answers
// with a problem document if the log does not exist or the request is invalid.
func (s *streams) serveEvents(bind func(*eventStream, *http.Request) error) http.HandlerFunc {
	return s.serveStream(protocolEvents, bind)
}

// serveStream is serveEvents for streams of a protocol.
func (s *streams) serveStream(protocol string, bind func(*eventStream, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)() //nolint:contextcheck // the gateway ends streams, too
		to, end := body(protocol, w, r, cancel)
		e := s.newEvents(protocol, to, r)
		defer e.depart()
		if e.begin(w, r.WithContext(ctx), bind) {
			defer end()
			e.serve(ctx)
		}
	}
}

// body returns where a stream is written: to the response, or to the WebSocket that the request asks for. end ends that once the
// stream is over, and gone is called when its client has left. A request that is refused is answered without it.
func body(protocol string, w http.ResponseWriter, r *http.Request, gone func()) (to http.ResponseWriter, end func()) {
	if protocol != protocolEvents || !sse.Upgrades(r) {
		return w, func() {}
	}
	var offered []string
	if p := admission.CredentialsOf(r).Subprotocol; p != "" {
		offered = append(offered, p)
	}
	socket := sse.NewSocket(w, r, offered, gone)
	return socket, func() {
		socket.Close()
		arrival.Of(r).Ended()
	}
}

// newEvents returns a stream that is written to w.
func (s *streams) newEvents(protocol string, w http.ResponseWriter, r *http.Request) *eventStream {
	beat := s.cfg.PingInterval
	if r.URL.Query().Has(queryTopic) {
		beat = min(beat, topicsQuiet)
	}
	e := &eventStream{
		s: s, protocol: protocol, pass: s.door.gate.Pass(r.RemoteAddr), begun: s.shared.Clock(), gone: make(chan struct{}),
		to: sse.New(w, sse.Options{
			QueueBytes: s.cfg.QueueBytes, Heartbeat: beat, WriteStall: s.cfg.WriteStall, Stats: &s.sent, Shared: r.ProtoMajor > 1,
		}),
	}
	s.shared.Connect(&e.client, nil, edge.Origin{Protocol: protocol, Remote: s.shared.Audit.Remote(r.RemoteAddr), Connection: edge.NewID()})
	return e
}

// begin binds the stream, and reports whether it is to be served; the request has been answered otherwise.
func (e *eventStream) begin(w http.ResponseWriter, r *http.Request, bind func(*eventStream, *http.Request) error) bool {
	err := e.admit(r)
	if err == nil && r.Method != http.MethodHead {
		err = bind(e, r)
	}
	switch {
	case err != nil:
		e.refuse(w, err)
	case e.nothing:
		w.WriteHeader(http.StatusNoContent)
	case e.shown == nil: // HEAD
		w.Header().Set("Content-Type", sse.Media)
	default:
		return true
	}
	return false
}

func (e *eventStream) refuse(w http.ResponseWriter, err error) {
	f := e.s.asFault(err)
	e.s.refused.WithLabelValues(string(f.Code)).Inc()
	e.s.logUnsent(problem(e.protocol, w, err, f))
}

// admit decides whether the request may have a stream, as conn.admit does for sockets.
func (e *eventStream) admit(r *http.Request) (err error) {
	if err := e.s.conns.reserve(e, e.pass); err != nil {
		return err
	}
	if err := e.pass.Address(); err != nil {
		return err
	}
	if e.s.conns.full() { // before the credentials cost anything
		return fault.New(fault.Overloaded)
	}
	who, err := e.pass.Authenticate(r.Context(), admission.CredentialsOf(r).Token, auth.Principal.MayWatch)
	if err != nil {
		return err
	}
	e.client.Identify(who, who.MayAct())
	leave, err := e.s.door.requests.Principal(who, e.s.door.gate.Anonymous)
	if err != nil {
		return err
	}
	leave() // a stream counts as a connection of its principal, too
	if err := e.pass.Stream(who); err != nil {
		return err
	}
	unlimited(r)
	return e.s.conns.enter(e.pass, arrival.Of(r))
}

// serve writes until the stream ends.
//
// An idle stream keeps the stack of what has called it, and a stack of 8 KiB suffices only while all of them have small frames:
// records are made in functions of their own.
func (e *eventStream) serve(ctx context.Context) {
	e.client.RecordConnected()
	defer e.recordEnd()
	defer e.shown.Close()
	e.to.Serve(ctx, e)
}

func (e *eventStream) recordEnd() {
	e.client.Record(audit.Closed, audit.Record{Code: string(e.to.Code()), DurationMS: e.s.shared.Clock().Sub(e.begun).Milliseconds()})
}

// place is a log, the position after which it is to be shown, and its end.
type place struct {
	log         subject.Log
	after, last eventlog.Cursor
}

// find returns the log of the kind that the path names, and the position.
func find(r *http.Request, c *edge.Client, kind id.Kind) (at place, err error) {
	at.log = subject.Log{Tenant: c.Principal().Tenant, Kind: kind, Entity: id.EntityFromExternal(r.PathValue("id"))}
	if at.last, _, err = c.Ends(r.Context(), at.log, fault.New(missing[kind])); err != nil {
		return at, err
	}
	at.after, err = resumeAt(r, at.last)
	return at, err
}

// bindLog binds the stream to the log of the kind that the path names.
func (e *eventStream) bindLog(r *http.Request, kind id.Kind) error {
	at, err := find(r, &e.client, kind)
	if err != nil {
		return err
	}
	e.shown = events.NewLog(r.Context(), e.s.shared.Streams, at.log, at.after, e.to, e.client.Watches())
	return nil
}

// resumeAt returns the position after which to show a log that ends at last. A client that
// reconnects repeats its address, so that Last-Event-ID takes precedence over the parameter
// after. Without either the stream starts at the beginning of the log.
func resumeAt(r *http.Request, last eventlog.Cursor) (after eventlog.Cursor, err error) {
	text, field := r.Header.Get(sse.HeaderResume), sse.HeaderResume
	if text == "" {
		if text, field = r.URL.Query().Get(binding.QueryAfter), binding.QueryAfter; !r.URL.Query().Has(binding.QueryAfter) {
			return after, nil
		}
	}
	if after, err = eventlog.ParseCursor(text); err != nil || after.Seq > last.Seq {
		return after, fault.Newf(fault.CursorInvalid, "%s is not a position in this log. Use the id of the last event that you received.", field).At(field).Wrap(err)
	}
	return after, nil
}

// bindLive binds the stream to the topics that the query names, without any to the announcements of the tenant.
func (e *eventStream) bindLive(r *http.Request) (err error) {
	types, err := typesOf(r)
	if err != nil {
		return err
	}
	if r.URL.Query().Has(queryTopic) {
		topics, err := e.s.topics(r, &e.client, types, e.to)
		if err == nil {
			e.shown = topics
		}
		return err
	}
	live, err := e.s.announcements.Show(r.Context(), e.client.Principal(), types, e.to, e.client.Watches())
	if err == nil {
		e.shown = live
	}
	return err
}

// typesOf returns the types of events that the query names; none = all.
func typesOf(r *http.Request) (types []event.Type, err error) {
	for _, list := range r.URL.Query()[queryTypes] {
		for name := range strings.SplitSeq(list, ",") {
			if !event.Known(event.Type(name)) {
				return nil, fault.Newf(fault.InvalidField, "types must be a comma-separated list of event types, such as run.started,run.completed. %q is not an event type.", name).At(queryTypes)
			}
			types = append(types, event.Type(name))
		}
	}
	return types, nil
}

// Room implements sse.Handler.
func (e *eventStream) Room() { e.shown.Room() }

// Tick implements sse.Handler: credentials end, and streams that are too old.
func (e *eventStream) Tick(time.Time) {
	f := lapsed(e.s.auth, e.s.shared.Clock(), e.client.Principal())
	age := e.s.shared.Clock().Sub(e.begun)
	switch {
	case f == nil && e.s.cfg.StreamMaxAge > 0 && age >= e.s.cfg.StreamMaxAge:
		e.retire(fault.New(fault.Draining))
	case f == nil:
	default:
		end(e.protocol, e.to, f)
	}
}

// Protocol implements connection.
func (e *eventStream) Protocol() string { return e.protocol }

// flush implements connection: nothing is acknowledged.
func (*eventStream) flush(context.Context) {}

// Settle implements connection: events are shown whether services run or not.
func (*eventStream) Settle() {}

// retire implements connection.
func (e *eventStream) retire(why *fault.Fault) {
	if e.protocol == protocolChats {
		end(e.protocol, e.to, why)
		return
	}
	e.to.End(why)
}

// tenant implements connection.
func (e *eventStream) tenant() id.Tenant { return e.client.Principal().Tenant }

// left implements connection.
func (e *eventStream) left() <-chan struct{} { return e.gone }

// queued implements connection.
func (e *eventStream) queued() int { return e.to.Queued() }

// listed implements connection.
func (e *eventStream) listed() listing {
	return listing{client: &e.client, since: e.begun, queued: e.to.Queued()}
}

// depart reverts the counts of admit.
func (e *eventStream) depart() {
	close(e.gone)
	e.pass.Leave()
}
