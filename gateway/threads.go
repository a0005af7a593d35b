package gateway

import (
	"net/http"

	"github.com/waggle-dev/waggle/gateway/agui"
	"github.com/waggle-dev/waggle/gateway/api/respond"
)

// streamThread returns the handler of requests that are shown a thread. open is called for those of a principal that may watch.
func (s *streams) streamThread(open agui.Open) http.HandlerFunc {
	return s.serveStream(protocolThreads, func(e *eventStream, r *http.Request) error {
		p := e.client.Principal()
		if r.Method == http.MethodPost {
			if _, err := s.door.quota.Allow(p.Tenant, p.Subject); err != nil {
				return err
			}
		}
		r = respond.Traced(r)
		st, err := open(r.Context(), r, &e.client, e.to)
		switch {
		case err != nil && st != nil:
			st.Close()
			return err
		case err != nil:
			return err
		case st.Over():
			st.Close()
			e.nothing = true
			return nil
		}
		st.Begin()
		e.shown = st
		return nil
	})
}

// threadServer answers the requests about threads that get no stream.
func (s *streams) threadServer() respond.Server {
	return respond.Server{Auth: s.door.gate, Edge: s.shared.Edge, Protocol: protocolThreads, Admit: s.door.admitRequest, Refuse: agui.Problem}
}
