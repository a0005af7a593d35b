// Package forward lets every gateway of an installation with several cells take the clients of every tenant: it forwards their
// requests and sockets to a gateway of the tenant's cell.
//
// A forwarded request carries the client's credentials, its address in the header for proxies, and the header Waggle-Cell with
// the name of the cell. A gateway never forwards a request with that header, so that two gateways whose copies of the directory
// differ for a moment send no request in a circle. The header grants nothing: a stranger who sends it can only have a request
// refused that would have been forwarded.
package forward

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"time"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/cell"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// HeaderCell names the cell that a request was forwarded to.
const HeaderCell = "Waggle-Cell"

const (
	// dialMaxWait bounds one attempt to reach a gateway: a machine that is gone does not answer.
	dialMaxWait = 2 * time.Second
	// idleConns is the number of idle connections that are kept to each gateway.
	idleConns = 64
	// leaveMaxWait bounds the withdrawal of the lease, which expires otherwise.
	leaveMaxWait = time.Second
)

// Config configures a Forwarder. All fields are required.
type Config struct {
	Directory *cell.Directory
	Cell      id.Name // of this gateway
	URL       string  // under which gateways of other cells reach this one
	Stall     time.Duration
	Logger    zerolog.Logger
	Refuse    func(http.ResponseWriter, *fault.Fault)
}

// Forwarder forwards requests, and reports to the directory which changes this gateway has carried out. It is safe for
// concurrent use.
type Forwarder struct {
	Guests

	cfg     Config
	through *transport
	lease   *cell.Lease
	unwatch func()
	retire  func([]id.Tenant)
}

// New returns a forwarder that is not started.
func New(cfg Config) *Forwarder {
	f := &Forwarder{Guests: Guests{dir: cfg.Directory, own: cfg.Cell, count: map[id.Tenant]int{}}, cfg: cfg}
	f.over = f.settle
	f.through = &transport{dir: cfg.Directory, base: &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialMaxWait}).DialContext,
		MaxIdleConnsPerHost: idleConns, IdleConnTimeout: time.Minute, DisableCompression: true,
	}}
	return f
}

// Start lists the gateway. From then on retire gets the tenants whose connections have to leave; it must not block.
func (f *Forwarder) Start(ctx context.Context, instance id.Name, retire func([]id.Tenant)) (err error) {
	f.retire = retire
	if f.lease, err = f.cfg.Directory.Join(ctx, f.cfg.Cell, instance, f.cfg.URL); err != nil {
		return err
	}
	f.unwatch = f.cfg.Directory.Watch(f.settle)
	f.settle()
	return nil
}

// settle asks the connections of tenants that the cell does not serve any more to leave, and reports the copy's revision once
// all have left.
func (f *Forwarder) settle() {
	revision := f.cfg.Directory.Revision()
	if left := f.strangers(); len(left) > 0 {
		f.retire(left)
		return
	}
	if err := f.lease.Saw(revision); err != nil {
		f.cfg.Logger.Error().Err(err).Msg("failed to report cell directory revision")
	}
}

// Drain reports that the gateway is draining.
func (f *Forwarder) Drain() {
	if f.lease != nil {
		_ = f.lease.Drain() // a lease that cannot be changed expires
	}
}

// Stop withdraws the gateway.
func (f *Forwarder) Stop() {
	f.through.base.CloseIdleConnections()
	if f.lease == nil {
		return
	}
	f.unwatch()
	ctx, cancel := context.WithTimeout(context.Background(), leaveMaxWait)
	defer cancel()
	if err := f.lease.Leave(ctx); err != nil {
		f.cfg.Logger.Debug().Err(err).Msg("gateway lease left to expire")
	}
}

// Aim returns the cell to forward a request of a tenant to; here is true if this cell serves the tenant. The error is the fault
// of a request that no cell can answer now.
func (f *Forwarder) Aim(t id.Tenant, forwarded bool) (to id.Name, here bool, err error) {
	p := f.cfg.Directory.Place(t)
	switch {
	case p.Moving():
		return to, false, fault.New(fault.TenantMoving)
	case p.Cell == f.cfg.Cell:
		return p.Cell, true, nil
	case forwarded: // the copies of two gateways differ
		return to, false, fault.New(fault.TenantMoving)
	}
	return p.Cell, false, nil
}

// Serve forwards a request to a gateway of the cell, until its answer or its socket ends.
func (f *Forwarder) Serve(w http.ResponseWriter, r *http.Request, to id.Name) {
	p := &httputil.ReverseProxy{
		Transport: f.through, ErrorLog: stdlog.New(f.cfg.Logger.With().Str("level", "debug").Logger(), "", 0),
		Rewrite: func(p *httputil.ProxyRequest) { address(p, to) },
		ModifyResponse: func(a *http.Response) error {
			for name := range a.Header {
				w.Header().Del(name) // the answer has its own
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			f.cfg.Logger.Debug().Err(err).Stringer("cell", to).Msg("failed to forward request")
			f.cfg.Refuse(w, fault.New(fault.CellUnavailable).Wrap(err))
		},
	}
	p.ServeHTTP(&patient{w, http.NewResponseController(w), f.cfg.Stall}, r)
}

// address prepares a request for the cell: its host is that of the client's request, because all gateways serve the same names.
func address(p *httputil.ProxyRequest, to id.Name) {
	p.Out.URL.Scheme, p.Out.URL.Host = "http", to.String() // the transport chooses the gateway
	p.Out.Host = p.In.Host
	p.SetXForwarded()
	p.Out.Header.Del("X-Forwarded-Host")
	p.Out.Header.Del("X-Forwarded-Proto")
	p.Out.Header.Del("Forwarded")
	if client, err := netip.ParseAddrPort(p.In.RemoteAddr); err == nil {
		p.Out.Header.Set("Forwarded", forwardedFor(client.Addr().Unmap()))
	}
	p.Out.Header.Set(HeaderCell, to.String())
}

// forwardedFor returns the value of the header Forwarded (RFC 7239) for an address.
func forwardedFor(client netip.Addr) string {
	if client.Is6() {
		return fmt.Sprintf(`for="[%s]"`, client.WithZone(""))
	}
	return "for=" + client.String()
}

// transport sends each request to a live gateway of the cell that its URL names. It tries the next one if a gateway cannot be
// reached: such an attempt has sent nothing.
type transport struct {
	dir  *cell.Directory
	base *http.Transport
}

// errGone means that a cell has no live gateway.
var errGone = errors.New("the cell has no live gateway")

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	name, err := id.ParseName(r.URL.Host)
	if err != nil {
		return nil, err
	}
	last := fmt.Errorf("%w: %s", errGone, name)
	for _, at := range t.dir.Next(name) {
		base, err := url.Parse(at)
		if err != nil {
			last = err
			continue
		}
		out := r.Clone(r.Context())
		out.URL.Scheme, out.URL.Host = base.Scheme, base.Host
		answer, err := t.base.RoundTrip(out)
		if err == nil {
			return answer, nil
		}
		last = err
		if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" {
			break
		}
	}
	return nil, last
}

// patient is the writer of a forwarded answer: the client has to take something within stall, however long the answer lasts.
type patient struct {
	http.ResponseWriter
	rc    *http.ResponseController
	stall time.Duration
}

// Write implements http.ResponseWriter.
func (p *patient) Write(b []byte) (int, error) {
	if err := p.rc.SetWriteDeadline(time.Now().Add(p.stall)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return p.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the writer.
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }
