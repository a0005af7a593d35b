package gateway

import (
	"mime"
	"net/http"
	"strings"

	"github.com/waggle-dev/waggle/gateway/admission"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/events"
	"github.com/waggle-dev/waggle/gateway/transport/unary"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// wantsLines reports whether a request asks for JSON lines rather than for a stream: the
// type that Accept names first decides.
func wantsLines(r *http.Request) bool {
	for _, list := range r.Header.Values("Accept") {
		for one := range strings.SplitSeq(list, ",") {
			switch media, _, _ := mime.ParseMediaType(one); media {
			case respond.MediaLines:
				return true
			case respond.MediaEvents:
				return false
			}
		}
	}
	return false
}

// servePage answers a request with the events that a log of the kind has now, one on each
// line: as many as fit into one answer.
func (s *streams) servePage(w http.ResponseWriter, r *http.Request, kind id.Kind) {
	pass := s.door.gate.Pass(r.RemoteAddr)
	defer pass.Leave()
	to, err := s.page(pass, w, r, kind)
	if err != nil {
		s.refuse(w, s.asFault(err))
		return
	}
	to.Serve(r.Context(), s.problem)
}

// page returns the answer of servePage, which pass is for.
func (s *streams) page(pass *admission.Pass, w http.ResponseWriter, r *http.Request, kind id.Kind) (*unary.Response, error) {
	who, err := pass.Authenticate(r.Context(), admission.CredentialsOf(r).Token, auth.Principal.MayWatch)
	if err != nil {
		return nil, err
	}
	leave, err := s.door.admitRequest(r, who)
	if err != nil {
		return nil, err
	}
	pass.Add(leave)
	client := s.shared.Edge.Client(who, edge.Origin{Protocol: protocolEvents, Remote: s.shared.Audit.Remote(r.RemoteAddr)})
	at, err := find(r, client, kind)
	if err != nil {
		return nil, err
	}
	part, err := client.Room(r.Context(), s.cfg.QueueBytes)
	if err != nil {
		return nil, err
	}
	pass.Add(part.Leave)
	to := unary.New(w, unary.Options{QueueBytes: s.cfg.QueueBytes, WriteStall: s.cfg.WriteStall, Lines: true})
	events.Page(r.Context(), s.shared.Streams, at.log, at.after, at.last.Seq, to)
	return to, nil
}

// streamLog returns the handler of streams of logs of a kind, and of pages of them.
func (s *streams) streamLog(kind id.Kind) http.HandlerFunc {
	stream := s.serveEvents(func(e *eventStream, r *http.Request) error { return e.bindLog(r, kind) })
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept")
		if wantsLines(r) {
			s.servePage(w, r, kind)
			return
		}
		stream(w, r)
	}
}
