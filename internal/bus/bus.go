// Package bus connects to NATS and defines the streams and buckets of Waggle. It gives their messages no meaning.
//
// Streams whose messages belong to a log each (index, timers, holdings, positions, snapshots) have no bound of their own,
// or a fraction of nats.event_max_bytes: a fixed one was full after a day with five new sessions a second, and a full
// bucket of holdings refuses sessions. Shards and commands drop repeats for seconds only, because the server keeps 250
// bytes of memory for each message of that time; later repeats are found in the log. Shards have a limit of messages that
// no log reaches, with which the server uses blocks of 4 MB instead of 8.
package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// pingInterval and maxPings detect a dead server within 10 s, sooner than the 15 s for which writers retry.
	pingInterval = 5 * time.Second
	maxPings     = 2
	// drainTimeout bounds Close: a server that does not answer must not delay the end of a process beyond an
	// orchestrator's grace period.
	drainTimeout = 5 * time.Second
	// connectPause spaces the attempts of Connect: a starting server is ready within a second.
	connectPause = 200 * time.Millisecond
)

// Config describes the connection to NATS. The zero value means nats://127.0.0.1:4222.
type Config struct {
	URL          string                     // one or several, separated by commas
	Name         string                     // connection name, shown by NATS monitoring
	InboxPrefix  string                     // of subjects for answers; default _INBOX
	Creds        string                     // credentials file (JWT)
	NKeySeedFile string                     // nkey seed file
	TLSCA        string                     // CA bundle that signs the server's certificate
	TLSCert      string                     // client certificate, with TLSKey
	TLSKey       string                     //
	Partitions   subject.Partitions         // of the installation; 0 = subject.DefaultPartitions
	InProcess    nats.InProcessConnProvider // connect without a socket to a server in this process
	Trouble      func() error               // why the server takes no messages, where that is known; may be nil
	Logger       zerolog.Logger
}

// Conn is one connection with its JetStream context. It is safe for concurrent use.
type Conn struct {
	nc         *nats.Conn
	js         jetstream.JetStream
	instance   string
	partitions subject.Partitions
	log        zerolog.Logger
	closed     chan struct{}
	trouble    func() error
	writes     writes

	mu    sync.Mutex
	next  int
	state map[int]func(bool)
	slow  map[int]func(*nats.Subscription)
}

// Connect connects and waits, within ctx, until the server answers. The connection reconnects without limit after a
// loss. A publish without a connection fails at once, because a hidden queue would deliver late.
func Connect(ctx context.Context, cfg Config) (*Conn, error) {
	c := &Conn{
		instance: uuid.NewString(), partitions: cmp.Or(cfg.Partitions, subject.DefaultPartitions), log: cfg.Logger, closed: make(chan struct{}), trouble: cfg.Trouble,
		state: map[int]func(bool){}, slow: map[int]func(*nats.Subscription){},
	}
	url := cfg.URL
	if url == "" {
		url = nats.DefaultURL
	}
	opts, err := c.options(cfg)
	if err != nil {
		return nil, err
	}
	for {
		c.nc, err = nats.Connect(url, opts...)
		if err == nil {
			break
		}
		if errors.Is(err, nats.ErrAuthorization) || ctx.Err() != nil {
			return nil, fmt.Errorf("connect to NATS at %s: %w", url, err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("connect to NATS at %s: %w", url, err)
		case <-time.After(connectPause):
		}
	}
	if c.js, err = jetstream.New(c.nc); err != nil {
		c.nc.Close()
		return nil, fmt.Errorf("use JetStream: %w", err)
	}
	return c, nil
}

func (c *Conn) options(cfg Config) ([]nats.Option, error) {
	log := cfg.Logger
	opts := []nats.Option{
		nats.Name(cfg.Name), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1),
		nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(maxPings), nats.DrainTimeout(drainTimeout),
		nats.IgnoreAuthErrorAbort(), nats.CustomReconnectDelay(reconnectDelay),
		nats.DisconnectErrHandler(func(nc *nats.Conn, err error) {
			if !nc.IsClosed() && !nc.IsDraining() { // the server or the network closed it
				log.Warn().Err(err).Msg("NATS connection lost")
			}
			c.changed(false)
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			log.Info().Str("server", nc.ConnectedUrlRedacted()).Msg("NATS connection restored")
			c.writes.forget()
			c.changed(true)
		}),
		nats.ClosedHandler(func(*nats.Conn) { close(c.closed) }),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrSlowConsumer) && sub != nil {
				log.Warn().Str("subject", sub.Subject).Msg("messages dropped: slow subscription")
				c.isSlow(sub)
				return
			}
			log.Warn().Err(err).Msg("error received from NATS")
		}),
	}
	if cfg.InboxPrefix != "" {
		opts = append(opts, nats.CustomInboxPrefix(cfg.InboxPrefix))
	}
	if cfg.InProcess != nil {
		opts = append(opts, nats.InProcessServer(cfg.InProcess))
	}
	if cfg.Creds != "" {
		opts = append(opts, nats.UserCredentials(cfg.Creds))
	}
	if cfg.NKeySeedFile != "" {
		o, err := nats.NkeyOptionFromSeed(cfg.NKeySeedFile)
		if err != nil {
			return nil, fmt.Errorf("read the nkey seed file: %w", err)
		}
		opts = append(opts, o)
	}
	if cfg.TLSCA != "" {
		opts = append(opts, nats.RootCAs(cfg.TLSCA))
	}
	if cfg.TLSCert != "" {
		opts = append(opts, nats.ClientCert(cfg.TLSCert, cfg.TLSKey))
	}
	return opts, nil
}

// reconnectDelay grows to 2 s with full jitter, so that a fleet does not reconnect in one wave.
func reconnectDelay(attempts int) time.Duration {
	limit := min(100*time.Millisecond<<min(attempts, 5), 2*time.Second)
	return limit/2 + rand.N(limit/2) //nolint:gosec // jitter needs no secrecy
}

// NATS returns the underlying connection.
func (c *Conn) NATS() *nats.Conn { return c.nc }

// Partitions returns the number of partitions of the installation, as configured.
func (c *Conn) Partitions() subject.Partitions { return c.partitions }

// JS returns the JetStream context.
func (c *Conn) JS() jetstream.JetStream { return c.js }

// Instance returns an id that is unique to this connection.
func (c *Conn) Instance() string { return c.instance }

// Logger returns the logger of the connection, for the parts that use it.
func (c *Conn) Logger() *zerolog.Logger { return &c.log }

// Up reports whether the connection is established.
func (c *Conn) Up() bool { return c.nc.IsConnected() }

// Wrote notes the end of all tries to write a message to a stream. A server whose disk was full does not answer writes to the
// streams that it could not write, until it is restarted, and answers everything else.
func (c *Conn) Wrote(stream string, err error) {
	if err == nil {
		c.writes.succeeded(stream)
		return
	}
	unanswered := errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded)
	if unanswered && c.Up() {
		c.writes.fail(stream, time.Now())
	}
}

// Trouble returns why the server takes no messages, or nil: what the server in this process says, or the streams to which this
// process could write nothing within the last minute, although it is connected.
func (c *Conn) Trouble() error {
	if c.trouble != nil {
		if err := c.trouble(); err != nil {
			return err
		}
	}
	muted := c.writes.muted(time.Now())
	if len(muted) == 0 {
		return nil
	}
	return fmt.Errorf("NATS does not take messages for the streams %s; if its disk was full, make room, then restart the NATS server",
		strings.Join(muted, ", "))
}

// Watch calls f at each loss (false) and return (true) of the connection, in order and one call at a time. f must not
// block. cancel does not wait for a running call.
func (c *Conn) Watch(f func(up bool)) (cancel func()) { return add(c, c.state, f) }

// Closed is closed when the connection is closed permanently.
func (c *Conn) Closed() <-chan struct{} { return c.closed }

// OnSlow calls f after a subscription of this connection lost messages because its reader was too slow. f must not
// block.
func (c *Conn) OnSlow(f func(*nats.Subscription)) (cancel func()) { return add(c, c.slow, f) }

func add[F any](c *Conn, m map[int]F, f F) (cancel func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.next
	c.next++
	m[n] = f
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(m, n)
	}
}

func listeners[F any](c *Conn, m map[int]F) []F {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]F, 0, len(m))
	for _, f := range m {
		out = append(out, f)
	}
	return out
}

func (c *Conn) changed(up bool) {
	for _, f := range listeners(c, c.state) {
		f(up)
	}
}

func (c *Conn) isSlow(sub *nats.Subscription) {
	for _, f := range listeners(c, c.slow) {
		f(sub)
	}
}

// Close sends pending messages, unsubscribes and closes. It returns when the connection is closed, within seconds
// even if the server does not answer.
func (c *Conn) Close() {
	if c.nc.IsClosed() {
		return
	}
	if err := c.nc.Drain(); err != nil {
		c.nc.Close()
	}
	<-c.closed
}

// NoResponders reports whether an answer is that of a NATS server to a request that no subscriber gets.
func NoResponders(answer *nats.Msg) bool {
	return len(answer.Data) == 0 && answer.Header.Get("Status") == "503"
}
