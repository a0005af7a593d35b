// Package census lists the connections of all gateways for operators. Each gateway knows its own ones and answers the others over the
// bus, with what fits into one message.
package census

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/rpc"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// maxWait bounds the wait for the answers of other gateways.
	maxWait = time.Second
	// maxAnswer bounds the connections of an answer in bytes: half of what a message of NATS may have by default.
	maxAnswer = 512 << 10
	// maxWatches bounds the viewers that are listed of a connection: a socket may have hundreds of sessions.
	maxWatches = 10
)

// request is the subject on which every gateway answers.
var request = subject.RPC(cmd.Gateways, cmd.ListConnections)

// Config says what a census works with.
type Config struct {
	Conn  *bus.Conn
	Name  string // of this gateway's instance
	Clock func() time.Time
	// Own returns the connections of this gateway that belong to the tenant.
	Own func(cmd.ConnectionsRequest) []wire.Connection
	// Gateways returns the names of all that run. They may have this one.
	Gateways func() []string
}

// Census lists connections. It is safe for concurrent use.
type Census struct {
	Config

	mu  sync.Mutex
	sub *nats.Subscription // nil: not started
}

// part is what one gateway knows.
type part struct {
	Gateway     string            `json:"gateway"`
	Total       int               `json:"total"`
	Connections []wire.Connection `json:"connections"`
}

// New returns a census of the gateway, which does not answer others before Start.
func New(c Config) *Census { return &Census{Config: c} }

// Start begins to answer other gateways.
func (c *Census) Start() error {
	sub, err := c.Conn.NATS().Subscribe(request, c.answer)
	if err != nil {
		return fmt.Errorf("offer the connections on the bus: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sub = sub
	return nil
}

// Stop ends the answers. It does nothing before Start.
func (c *Census) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sub != nil {
		_ = c.sub.Unsubscribe() // fails after an earlier Stop, or if the connection is closed, which ends the subscription, too
	}
}

// List returns the connections that fit, at most so many as the request says. It waits at most a second for gateways that do not
// answer, and names them.
func (c *Census) List(ctx context.Context, q cmd.ConnectionsRequest) (wire.ConnectionList, error) {
	out := wire.ConnectionList{Gateway: c.Name, TakenAt: c.Clock().UTC(), Connections: []wire.Connection{}, Missing: []string{}}
	waits := map[string]bool{}
	for _, name := range append(c.Gateways(), q.Gateway) {
		if name != "" && name != c.Name && asked(q, name) {
			waits[name] = true
		}
	}
	add := func(p part) {
		out.Total += p.Total
		out.Connections = append(out.Connections, p.Connections...)
	}
	if asked(q, c.Name) {
		add(c.part(q))
	}
	if err := c.ask(ctx, q, waits, add); err != nil {
		return out, err
	}
	for name := range waits {
		out.Missing = append(out.Missing, name)
	}
	slices.Sort(out.Missing)
	slices.SortFunc(out.Connections, first)
	out.Connections = out.Connections[:min(len(out.Connections), q.Limit)]
	return out, nil
}

// asked reports whether the request is for the gateway.
func asked(q cmd.ConnectionsRequest, name string) bool { return q.Gateway == "" || q.Gateway == name }

// ask adds the parts of the gateways, and leaves those that have not answered in time in waits. It ignores malformed answers.
func (c *Census) ask(ctx context.Context, q cmd.ConnectionsRequest, waits map[string]bool, add func(part)) error {
	if len(waits) == 0 {
		return nil
	}
	body, err := json.Marshal(q)
	if err != nil {
		return fmt.Errorf("encode a request for connections: %w", err)
	}
	within, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	err = rpc.Gather(within, c.Conn, request, body, func(answer []byte) bool {
		var p part
		if err := json.Unmarshal(answer, &p); err != nil {
			c.Conn.Logger().Debug().Err(err).Msg("connections ignored: not decodable")
			return false
		}
		if waits[p.Gateway] {
			delete(waits, p.Gateway)
			add(p)
		}
		return len(waits) == 0
	})
	if err != nil && ctx.Err() == nil {
		c.Conn.Logger().Debug().Err(err).Int("missing", len(waits)).Msg("failed to receive connections")
	}
	return ctx.Err()
}

// answer sends the connections of this gateway.
func (c *Census) answer(m *nats.Msg) {
	var q cmd.ConnectionsRequest
	err := json.Unmarshal(m.Data, &q)
	if err == nil && !asked(q, c.Name) {
		return
	}
	var body []byte
	if err == nil {
		body, err = json.Marshal(c.part(q))
	}
	if err == nil {
		err = m.Respond(body)
	}
	if err != nil && !errors.Is(err, nats.ErrMsgNoReply) {
		c.Conn.Logger().Debug().Err(err).Msg("failed to send connections")
	}
}

// part returns the connections of this gateway that fit: the first ones, as far as they fit into an answer.
func (c *Census) part(q cmd.ConnectionsRequest) part {
	all := c.Own(q)
	if q.Lagging {
		all = slices.DeleteFunc(all, func(one wire.Connection) bool { return !one.Lagging })
	}
	slices.SortFunc(all, first)
	p, size := part{Gateway: c.Name, Total: len(all)}, 0
	for _, one := range all[:min(len(all), max(q.Limit, 0))] {
		slices.SortStableFunc(one.Watches, mostBehind)
		if n := len(one.Watches); n > maxWatches {
			one.Watches, one.More = one.Watches[:maxWatches], n-maxWatches
		}
		text, err := json.Marshal(one)
		if size += len(text); err != nil || size > maxAnswer {
			break
		}
		p.Connections = append(p.Connections, one)
	}
	return p
}

// first orders connections: the longest lag first, then the newest connection.
func first(a, b wire.Connection) int {
	return cmp.Or(longest(lagging(a), lagging(b)), b.Since.Compare(a.Since), strings.Compare(a.ID, b.ID))
}

// longest orders lags by their beginnings: the longest first, and last those that have none.
func longest(a, b time.Time) int {
	if a.IsZero() != b.IsZero() {
		return b.Compare(a) // the zero time is before all others
	}
	return a.Compare(b)
}

// lagging returns since when a viewer of the connection lags, zero if none does.
func lagging(c wire.Connection) (since time.Time) {
	for _, w := range c.Watches {
		if !w.Lagging.IsZero() && (since.IsZero() || w.Lagging.Before(since)) {
			since = w.Lagging
		}
	}
	return since
}

// mostBehind orders viewers: the longest lag first, then those that are further behind.
func mostBehind(a, b wire.Watch) int {
	return cmp.Or(longest(a.Lagging, b.Lagging), cmp.Compare(b.Behind, a.Behind))
}
