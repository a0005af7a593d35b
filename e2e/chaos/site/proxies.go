package site

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// Proxies are connections that can be slowed down: from clients to the gateways, and from
// one gateway to the bus.
type Proxies struct {
	t      testing.TB
	hub    string
	server *toxiproxy.ApiServer

	mu  sync.Mutex
	all map[string]*toxiproxy.Proxy
}

func newProxies(t testing.TB, hub string) *Proxies {
	return &Proxies{
		t: t, hub: hub, all: map[string]*toxiproxy.Proxy{},
		server: toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()),
	}
}

// connect opens a line to an address and returns the address of its other end.
func (l *Proxies) connect(name, to string) string {
	l.t.Helper()
	p := toxiproxy.NewProxy(l.server, name, net.JoinHostPort(l.hub, "0"), to)
	require.NoError(l.t, p.Start())
	l.t.Cleanup(p.Stop)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[name] = p
	return p.Listen
}

// End returns the address of a line's near end.
func (l *Proxies) End(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[name].Listen
}

// Slow delays every line whose name begins with the prefix by 200 ms give or take 100,
// and cuts what goes over it into small pieces. The function that it returns ends it.
func (l *Proxies) Slow(prefix string) (heal func() error, err error) {
	toxics := []string{
		`{"name":"late","type":"latency","stream":"%s","attributes":{"latency":200,"jitter":100}}`,
		`{"name":"pieces","type":"slicer","stream":"%s","attributes":{"average_size":64,"size_variation":32,"delay":10}}`,
	}
	chosen := l.named(prefix)
	for _, p := range chosen {
		for _, toxic := range toxics {
			for _, stream := range []string{"upstream", "downstream"} {
				text := strings.Replace(fmt.Sprintf(toxic, stream), `"name":"`, `"name":"`+stream, 1)
				if _, err := p.Toxics.AddToxicJson(strings.NewReader(text)); err != nil {
					return nil, fmt.Errorf("slow %s down: %w", p.Name, err)
				}
			}
		}
	}
	return func() error {
		for _, p := range chosen {
			p.Toxics.ResetToxics(context.Background())
		}
		return nil
	}, nil
}

func (l *Proxies) named(prefix string) (out []*toxiproxy.Proxy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, p := range l.all {
		if strings.HasPrefix(name, prefix) {
			out = append(out, p)
		}
	}
	return out
}
