package edge

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// idBytes is the length of a connection's id: 60 random bits.
const idBytes = 12

// Answers to a direct message whose sender asks if it arrived. A call is confirmed with the
// load instead (command.CallTaken). No answer means that the outcome is unknown.
var (
	Confirmed = []byte("+") // the message is queued, or the protocol has no frame for it
	Refused   = []byte("-") // the message is not queued, and will not be
)

// Recipient is a connection that gets direct messages.
type Recipient interface {
	// Principal returns the user whose logs the messages are about.
	Principal() auth.Principal
	// Receive takes a direct message about a log of the principal, and returns the answer to
	// its sender, nil = none. It does not block.
	Receive(about subject.Log, e event.Event) (answer []byte)
}

// Recipients delivers direct messages to the connections of one gateway. All methods are
// safe for concurrent use.
type Recipients struct {
	gateway id.Name
	logger  zerolog.Logger

	mu   sync.Mutex
	byID map[string]Recipient

	sub   *nats.Subscription // nil before Subscribe
	ended chan struct{}
}

// NewRecipients returns the recipients of a gateway, which get nothing before Subscribe.
func NewRecipients(gateway id.Name, logger zerolog.Logger) *Recipients {
	return &Recipients{gateway: gateway, logger: logger, byID: map[string]Recipient{}, ended: make(chan struct{})}
}

// Subscribe begins the delivery. It is called once, before Close.
func (r *Recipients) Subscribe(conn *bus.Conn) error {
	sub, err := conn.NATS().Subscribe(subject.DirectFilter(r.gateway), r.deliver)
	if err != nil {
		return fmt.Errorf("subscribe to direct messages: %w", err)
	}
	r.mu.Lock()
	r.sub = sub
	r.mu.Unlock()
	sub.SetClosedHandler(func(string) { close(r.ended) })
	return nil
}

// Close ends the delivery. When it returns, no recipient is being called.
func (r *Recipients) Close() {
	r.mu.Lock()
	sub := r.sub
	r.mu.Unlock()
	if sub == nil {
		return
	}
	if err := sub.Unsubscribe(); err == nil {
		<-r.ended
	}
}

// Add registers a recipient under an id of its own.
func (r *Recipients) Add(to Recipient) (id.Name, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		name, err := id.ParseName("c" + strings.ToLower(rand.Text()[:idBytes]))
		if err != nil {
			return id.Name{}, err
		}
		if key := name.String(); r.byID[key] == nil {
			r.byID[key] = to
			return name, nil
		}
	}
}

// Remove takes a recipient off. Messages for it are refused from then on.
func (r *Recipients) Remove(name id.Name) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byID, name.String())
}

// ReplyTo returns the subject of direct messages to a recipient.
func (r *Recipients) ReplyTo(name id.Name) string { return subject.ReplyTo(r.gateway, name) }

// deliver hands one message to its recipient.
func (r *Recipients) deliver(m *nats.Msg) {
	_, name, err := subject.ParseDirect(m.Subject)
	if err != nil {
		return
	}
	r.mu.Lock()
	to := r.byID[name.String()]
	r.mu.Unlock()
	if to == nil { // the connection has ended
		r.reply(m, Refused)
		return
	}
	var e event.Event
	if err := json.Unmarshal(m.Data, &e); err != nil {
		r.logger.Warn().Err(err).Str("subject", m.Subject).Msg("direct message dropped: not decodable")
		r.reply(m, Refused)
		return
	}
	about, err := subject.ParseName(e.Subject)
	if err != nil || e.Sequence != 0 || !to.Principal().Owns(about) {
		r.logger.Warn().Err(err).Str("log", e.Subject).Uint64("seq", e.Sequence).Msg("direct message dropped: not for this connection")
		r.reply(m, Refused)
		return
	}
	r.reply(m, to.Receive(about, e))
}

// reply answers a sender that asks for an answer.
func (r *Recipients) reply(m *nats.Msg, answer []byte) {
	if m.Reply == "" || answer == nil {
		return
	}
	if err := m.Respond(answer); err != nil {
		r.logger.Debug().Err(err).Msg("failed to confirm direct message")
	}
}
