package eventlog

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// requester sends requests that have many answers. All of them share one inbox
// subscription.
//
// jetstreamext.GetBatch is not used for it: it ends silently, as if complete, when
// its context expires in the middle of a batch, drops the end marker with the number
// of messages that are left, makes a subscription and a goroutine for each request,
// and its inbox lies within the client's own reply prefix, so that the server sends
// every message twice.
type requester struct {
	nc     *nats.Conn
	prefix string
	sub    *nats.Subscription

	mu      sync.Mutex
	counter uint64
	waiting map[string]chan *nats.Msg
}

func newRequester(nc *nats.Conn) (*requester, error) {
	r := &requester{nc: nc, prefix: nc.NewInbox() + ".", waiting: make(map[string]chan *nats.Msg)}
	var err error
	if r.sub, err = nc.Subscribe(r.prefix+"*", r.dispatch); err != nil {
		return nil, fmt.Errorf("subscribe to replies: %w", err)
	}
	return r, nil
}

func (r *requester) close() { _ = r.sub.Unsubscribe() }

// dispatch hands an answer to its request. A request that has given up is not
// waiting any more; one that gets more than it asked for loses the rest and notices.
func (r *requester) dispatch(m *nats.Msg) {
	r.mu.Lock()
	ch := r.waiting[strings.TrimPrefix(m.Subject, r.prefix)]
	r.mu.Unlock()
	if ch == nil {
		return
	}
	select {
	case ch <- m:
	default:
	}
}

// many sends a request with room for that many answers and calls visit for each
// until it returns false. It fails with nats.ErrTimeout when nothing has arrived for
// the time quiet, and with nats.ErrNoResponders when nobody serves the subject.
func (r *requester) many(ctx context.Context, subject string, body []byte, room int, quiet time.Duration, visit func(*nats.Msg) bool) error {
	token, ch := r.register(room)
	defer r.forget(token)
	if err := r.nc.PublishRequest(subject, r.prefix+token, body); err != nil {
		return fmt.Errorf("request %s: %w", subject, err)
	}
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	for {
		select {
		case m := <-ch:
			if m.Header.Get("Status") == "503" && len(m.Data) == 0 {
				return fmt.Errorf("request %s: %w", subject, nats.ErrNoResponders)
			}
			if !visit(m) {
				return nil
			}
			timer.Reset(quiet)
		case <-timer.C:
			return fmt.Errorf("request %s: %w", subject, nats.ErrTimeout)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (r *requester) register(room int) (string, chan *nats.Msg) {
	ch := make(chan *nats.Msg, room)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counter++
	token := strconv.FormatUint(r.counter, 36)
	r.waiting[token] = ch
	return token, ch
}

func (r *requester) forget(token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, token)
}
