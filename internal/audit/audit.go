// Package audit writes the audit log: principals and their actions, without contents and secrets.
//
// Writes are asynchronous and never delay their caller. The queue has a bound. At the bound the
// writer drops records and counts them in the metric waggle_audit_lost_total; as soon as it has
// room again it adds a record with the number of missing ones to the log.
//
// Each process begins a chain at its start: a record holds the chain, its number, and the SHA-256 of the record before; the
// first names the newest record of the log at that time. So changes, gaps, repeats and moves are found without an order of
// all writers. The newest record of a chain is covered by its place only, and a role can write false records of its own
// actions: copies elsewhere are the remedy. At its bound the log drops the oldest records, because refusing new ones would
// let a flood hide what follows.
package audit

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// defaultWaiting is the number of queued records. 10,000 records of some 400 bytes take 4 MB: a gateway writes as
	// many at 1,000 commands a second in the 7 s of an election after a lost leader.
	defaultWaiting = 10_000
	// tries bounds the attempts to send a record over an open connection. With tryPause between them, and the time of
	// each attempt, they outlast a lost leader.
	tries = 5
	// ackMaxWait bounds the wait for the acknowledgement of a record.
	ackMaxWait = 5 * time.Second
	tryPause   = 500 * time.Millisecond
	// closeMaxWait is the default of Options.CloseMaxWait.
	closeMaxWait = 3 * time.Second
	// anchorMaxWait bounds the look at the log before the first record.
	anchorMaxWait = 2 * time.Second
	// maxNumbers bounds the numbers in one record: with 10 digits each they fit into its maximum size.
	maxNumbers = 1000
	// inFlight is the number of records sent before the first acknowledgement: enough for 10,000 a second at 10 ms.
	inFlight = 128
)

// Modes of Options.Remote.
const (
	RemoteHash  = "hash"  // keyed hash of the address
	RemotePlain = "plain" // the address
	RemoteNone  = "none"  // nothing
)

// Options configure a writer. The zero value is useful.
type Options struct {
	Remote    string // form of addresses in records: hash (default), plain, none
	RemoteKey []byte // key of the hash; default: a random one, so that hashes compare within this process only
	Waiting   int    // bound of the queue; default 10,000
	// CloseMaxWait bounds the time in which Close sends the remaining records; default 3 s.
	CloseMaxWait time.Duration
	Source       string // of the records; default waggle/<instance>
	Registry     prometheus.Registerer
	Logger       zerolog.Logger
	Now          func() time.Time
}

// Writer writes records. A nil *Writer writes nothing. It is safe for concurrent use.
type Writer struct {
	conn    *bus.Conn
	opts    Options
	queue   chan audit.Record
	slots   chan struct{}
	stop    chan struct{}
	done    chan struct{}
	sending sync.WaitGroup
	once    sync.Once
	missing atomic.Int64 // dropped and not reported yet
	flood   flood
	chain   *chain // of the sending goroutine

	mu   sync.Mutex
	gone []int64 // numbers of the chain that the bus refused, not reported yet

	written prometheus.Counter
	lost    *prometheus.CounterVec
	waiting prometheus.GaugeFunc
}

// Reasons of the metric of losses.
const (
	lostFull    = "full"    // the queue was full
	lostRefused = "refused" // the bus did not accept it
	lostClosing = "closing" // the process ended first
	lostFlood   = "flood"   // its source caused too many refusals in a second
)

// New returns a writer, which runs until Close.
func New(conn *bus.Conn, o Options) (*Writer, error) {
	if o.Waiting <= 0 {
		o.Waiting = defaultWaiting
	}
	if o.CloseMaxWait <= 0 {
		o.CloseMaxWait = closeMaxWait
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Source == "" {
		o.Source = "waggle/" + conn.Instance()
	}
	if len(o.RemoteKey) == 0 {
		o.RemoteKey = make([]byte, sha256.Size)
		_, _ = rand.Read(o.RemoteKey) // never fails: crypto/rand
	}
	w := &Writer{
		conn: conn, opts: o, queue: make(chan audit.Record, o.Waiting), slots: make(chan struct{}, inFlight),
		stop: make(chan struct{}), done: make(chan struct{}),
		written: prometheus.NewCounter(prometheus.CounterOpts{Namespace: "waggle", Subsystem: "audit", Name: "records_total", Help: "Records of the audit log that were stored."}),
		lost:    prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "waggle", Subsystem: "audit", Name: "lost_total", Help: "Records of the audit log that were dropped, by reason."}, []string{"reason"}),
	}
	w.waiting = prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "waggle", Subsystem: "audit", Name: "waiting", Help: "Records of the audit log that wait to be written."},
		func() float64 { return float64(len(w.queue)) })
	for _, reason := range []string{lostFull, lostRefused, lostClosing, lostFlood} {
		w.lost.WithLabelValues(reason)
	}
	if err := telemetry.Register(o.Registry, "the audit log", w.written, w.lost, w.waiting); err != nil {
		return nil, err
	}
	go w.run()
	return w, nil
}

// Record queues a record. It sets the time and the source, and the id unless the record has one: the bus stores a
// record that repeats an id within two minutes once. It does not block: it drops and counts records for which the
// queue has no room.
func (w *Writer) Record(action id.Name, t id.Tenant, r audit.Record) {
	if w == nil {
		return
	}
	if r.ID == "" {
		r.ID = uuid.Must(uuid.NewV7()).String()
	}
	r.Time, r.Source = w.opts.Now().UTC(), w.opts.Source
	r.Action, r.Tenant = action.String(), t.String()
	if r.Outcome == "" {
		r.Outcome = audit.Done
	}
	if !w.flood.admits(r, w.opts.Now()) {
		w.drop(lostFlood)
		return
	}
	select {
	case <-w.stop:
		w.drop(lostClosing)
	default:
		select {
		case w.queue <- r:
		default:
			w.drop(lostFull)
		}
	}
}

func (w *Writer) drop(reason string) {
	w.lost.WithLabelValues(reason).Inc()
	w.missing.Add(1)
}

// Remote returns the form of an address ("192.0.2.1:4711") in records, as configured. It leaves out the port.
func (w *Writer) Remote(addr string) string {
	if w == nil || w.opts.Remote == RemoteNone {
		return ""
	}
	host := addr
	if ap, err := netip.ParseAddrPort(addr); err == nil {
		host = ap.Addr().Unmap().WithZone("").String()
	}
	if w.opts.Remote == RemotePlain {
		return host
	}
	mac := hmac.New(sha256.New, w.opts.RemoteKey)
	_, _ = mac.Write([]byte(host))
	return "hmac:" + hex.EncodeToString(mac.Sum(nil)[:12])
}

// run sends records in order; it waits for their acknowledgements concurrently.
func (w *Writer) run() {
	defer close(w.done)
	w.chain = newChain(w.newest())
	for {
		select {
		case r := <-w.queue:
			w.send(r)
		case <-w.stop:
			for {
				select {
				case r := <-w.queue:
					w.send(r)
				default:
					return
				}
			}
		}
	}
}

// newest returns the sequence of the newest record in the log, 0 if it is unknown.
func (w *Writer) newest() uint64 {
	ctx, cancel := context.WithTimeout(context.Background(), anchorMaxWait)
	defer cancel()
	s, err := w.conn.JS().Stream(ctx, subject.StreamAudit)
	if err != nil {
		return 0
	}
	return s.CachedInfo().State.LastSeq
}

func (w *Writer) send(r audit.Record) {
	if n, numbers := w.missing.Swap(0), w.unsaid(); n > 0 || len(numbers) > 0 {
		w.publish(audit.Lost, id.Tenant{}, audit.Record{
			ID: r.ID + ".lost", Time: r.Time, Source: r.Source, Action: audit.Lost.String(), Outcome: audit.Done, Count: n, Numbers: numbers,
		})
	}
	action, err := id.ParseName(r.Action)
	if err != nil {
		w.refused(err)
		return
	}
	tenant := id.Tenant{}
	if r.Tenant != "" {
		if tenant, err = id.ParseTenant(r.Tenant); err != nil {
			w.refused(err)
			return
		}
	}
	w.publish(action, tenant, r)
}

func (w *Writer) refused(err error) {
	w.drop(lostRefused)
	w.opts.Logger.Warn().Err(err).Msg("failed to write audit record")
}

// publish sends one record as the next of the chain, with retries.
func (w *Writer) publish(action id.Name, t id.Tenant, r audit.Record) {
	data, number, err := w.chain.link(r)
	if err != nil {
		w.refused(err)
		return
	}
	m := &nats.Msg{Subject: subject.Audit(t, action), Data: data, Header: nats.Header{}}
	m.Header.Set(jetstream.MsgIDHeader, r.ID)
	w.slots <- struct{}{}
	ack, err := w.conn.JS().PublishMsgAsync(m)
	w.sending.Go(func() {
		defer func() { <-w.slots }()
		if err == nil {
			err = acknowledged(ack)
		}
		if err != nil {
			err = w.deliver(m)
		}
		if err != nil {
			w.miss(number, r)
			w.refused(err)
			return
		}
		w.written.Inc()
	})
}

// unsaid returns numbers of records that are not stored, and that no record has reported.
func (w *Writer) unsaid() []int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	most := min(len(w.gone), maxNumbers)
	numbers := w.gone[:most:most]
	w.gone = w.gone[most:]
	return numbers
}

// miss notes a record of the chain that is not stored, with those that it stands for.
func (w *Writer) miss(number int64, r audit.Record) {
	w.mu.Lock()
	w.gone = append(append(w.gone, number), r.Numbers...)
	w.mu.Unlock()
	if r.Action == audit.Lost.String() {
		w.missing.Add(r.Count)
	}
}

// acknowledged waits until the record is stored.
func acknowledged(ack jetstream.PubAckFuture) error {
	select {
	case <-ack.Ok():
		return nil
	case err := <-ack.Err():
		return err
	case <-time.After(ackMaxWait):
		return nats.ErrTimeout
	}
}

// deliver publishes a record that may not be stored again, until it is stored or the bus has refused it too often.
// Its id prevents duplicates. Without a connection it waits: the queue keeps later records meanwhile.
func (w *Writer) deliver(m *nats.Msg) (err error) {
	for tried := 0; tried < tries; {
		<-time.After(tryPause)
		if !w.conn.Up() && !w.closing() {
			continue
		}
		tried++
		ctx, cancel := context.WithTimeout(context.Background(), ackMaxWait)
		_, err = w.conn.JS().PublishMsg(ctx, m)
		cancel()
		if err == nil {
			return nil
		}
	}
	return err
}

// closing reports whether Close was called.
func (w *Writer) closing() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

// Close sends the queued records, for 3 s at most, and ends the writer. It drops and counts the rest.
func (w *Writer) Close() {
	if w == nil {
		return
	}
	w.once.Do(func() {
		close(w.stop)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			<-w.done
			w.sending.Wait()
		}()
		select {
		case <-ended:
		case <-time.After(w.opts.CloseMaxWait):
			w.opts.Logger.Warn().Int("waiting", len(w.queue)).Msg("last audit records dropped: NATS too slow")
		}
		if w.opts.Registry != nil {
			for _, c := range []prometheus.Collector{w.written, w.lost, w.waiting} {
				w.opts.Registry.Unregister(c)
			}
		}
	})
}
