package gateway

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waggle-dev/waggle/gateway/admission"
	"github.com/waggle-dev/waggle/gateway/agui"
	"github.com/waggle-dev/waggle/gateway/api"
	"github.com/waggle-dev/waggle/gateway/arrival"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// door is what requests over HTTP go through before their handler. Sockets are admitted in conn.admit, and streams in
// eventStream.admit.
type door struct {
	*answers

	gate      *admission.Gate
	foreign   *admission.Foreign
	proxies   *admission.Proxies
	requests  *admission.Requests
	quota     *quota.Connections // nil = no quotas
	pages     Pages              // nil = none
	readLimit int64              // of a body, in bytes
	came      prometheus.Counter // requests
}

// counted counts the requests.
func (d *door) counted(http.ResponseWriter, *http.Request) bool {
	d.came.Inc()
	return true
}

// addressed gives requests of trusted proxies the address of their client, for the limits of
// addresses and for the audit log.
func (d *door) addressed(w http.ResponseWriter, r *http.Request) bool {
	if !d.proxies.Any() {
		return true
	}
	client, err := d.proxies.Client(r.RemoteAddr, r.Header)
	if err != nil {
		d.refuse(w, d.asFault(err))
		return false
	}
	r.RemoteAddr = client
	return true
}

// named refuses requests for host names that this gateway does not serve.
func (d *door) named(w http.ResponseWriter, r *http.Request) bool {
	if !d.gate.Host(r.Host) {
		d.refuse(w, fault.New(fault.HostRefused))
		return false
	}
	return true
}

// bounded ends the reading of a body that is too long.
func (d *door) bounded(w http.ResponseWriter, r *http.Request) bool {
	r.Body = http.MaxBytesReader(w, r.Body, d.readLimit)
	return true
}

// sameOrigin refuses calls from pages of foreign origins, even if browsers would hide the answer
// from them, and grants allowed pages access to the answer.
func (d *door) sameOrigin(w http.ResponseWriter, r *http.Request) bool {
	origins, preflight := r.Header.Values("Origin"), r.Method == http.MethodOptions
	err := d.gate.Page(r)
	allowed := preflight && d.gate.Preflight(r) || api.IsDocumentation(r.URL.Path) && admission.Visit(r)
	if err != nil && !allowed {
		d.foreign.Refused(r)
		d.problem(w, d.asFault(err))
		return false
	}
	if len(origins) == 0 {
		return true
	}
	head := w.Header()
	head.Add("Vary", "Origin")
	head.Set("Access-Control-Allow-Origin", origins[0])
	head.Set("Access-Control-Expose-Headers", agui.HeaderThread+", Retry-After")
	if preflight {
		head.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
		head.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Last-Event-ID, X-API-Key, traceparent")
		w.WriteHeader(http.StatusNoContent)
	}
	return !preflight
}

// paged returns the step that serves the pages for browsers.
func (d *door) paged() step {
	if d.pages == nil {
		return func(http.ResponseWriter, *http.Request) bool { return true }
	}
	pages := d.limited(d.pages)
	return func(w http.ResponseWriter, r *http.Request) bool {
		if d.pages.Serves(r) {
			pages.ServeHTTP(w, r)
			return false
		}
		return true
	}
}

// limited bounds the requests of an address. Those of the documentation have no principal.
func (d *door) limited(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leave, err := d.requests.Address(r.RemoteAddr)
		if err != nil {
			d.refuse(w, d.asFault(err))
			return
		}
		defer leave()
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), limitKey{}, leave)))
	})
}

type limitKey struct{}

// unlimited: the request is a stream, which counts as a connection of its address instead.
func unlimited(r *http.Request) {
	if leave, ok := r.Context().Value(limitKey{}).(func()); ok {
		leave()
	}
}

// admitRequest bounds the requests of a principal. Those that change something count as messages
// of its quota.
func (d *door) admitRequest(r *http.Request, p auth.Principal) (leave func(), err error) {
	if leave, err = d.requests.Principal(p, d.gate.Anonymous); err != nil {
		return nil, err
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if _, err := d.quota.Allow(p.Tenant, p.Subject); err != nil {
			leave()
			return nil, err
		}
	}
	arrival.Of(r).Admitted()
	return leave, nil
}
