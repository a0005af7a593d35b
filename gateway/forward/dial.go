package forward

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/coder/websocket"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Origin is what a gateway of another cell has to know of the request of a socket.
type Origin struct {
	host, target, remote, language string
}

// OriginOf returns the origin of a request.
func OriginOf(r *http.Request) Origin {
	return Origin{host: r.Host, target: r.URL.RequestURI(), remote: r.RemoteAddr, language: r.Header.Get(headerLanguage)}
}

// headerLanguage names the languages that a client prefers.
const headerLanguage = "Accept-Language"

// Dial opens a socket at a gateway of the cell for a client that has sent its token as a message. The error is a fault.
func (f *Forwarder) Dial(ctx context.Context, o Origin, to id.Name, token string) (*websocket.Conn, error) {
	head := http.Header{"Authorization": {"Bearer " + token}, HeaderCell: {to.String()}}
	if client, err := netip.ParseAddrPort(o.remote); err == nil {
		head.Set("X-Forwarded-For", client.Addr().Unmap().String())
		head.Set("Forwarded", forwardedFor(client.Addr().Unmap()))
	}
	if o.language != "" {
		head.Set(headerLanguage, o.language)
	}
	conn, answer, err := websocket.Dial(ctx, "ws://"+to.String()+o.target, &websocket.DialOptions{ //nolint:bodyclose // closed by the library
		HTTPClient: &http.Client{Transport: f.through}, HTTPHeader: head, Host: o.host,
	})
	switch {
	case err == nil:
		conn.SetReadLimit(-1) // the other gateway bounds what it sends
		return conn, nil
	case answer != nil && answer.StatusCode == http.StatusServiceUnavailable:
		return nil, fault.New(fault.TenantMoving).Wrap(err)
	default:
		return nil, fault.New(fault.CellUnavailable).Wrap(err)
	}
}
