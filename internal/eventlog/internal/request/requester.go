// Package request sends requests to JetStream and collects their answers, and runs reads a bounded number at a time.
package request

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/internal/bus"
)

// Requester sends requests and collects their answers, one or many. All requests share one inbox subscription. A
// request ends at once when the connection is lost: its answer is lost with it.
//
// jetstreamext.GetBatch does not suit batches: it ends silently, as if complete, when its context expires in the
// middle of one, drops the end marker with the number of remaining messages, makes a subscription and a goroutine for
// each request, and its inbox lies within the client's own reply prefix, so that the server sends every message
// twice.
type Requester struct {
	nc     *nats.Conn
	prefix string
	sub    *nats.Subscription

	mu      sync.Mutex
	counter uint64
	waiting map[string]chan *nats.Msg
	lost    chan struct{} // closed when the connection is lost
}

// New returns a requester on the connection. Close ends its subscription.
func New(nc *nats.Conn) (*Requester, error) {
	r := &Requester{
		nc: nc, prefix: nc.NewInbox() + ".",
		waiting: make(map[string]chan *nats.Msg), lost: make(chan struct{}),
	}
	var err error
	if r.sub, err = nc.Subscribe(r.prefix+"*", r.dispatch); err != nil {
		return nil, fmt.Errorf("subscribe to replies: %w", err)
	}
	return r, nil
}

// Close ends the subscription for answers.
func (r *Requester) Close() { _ = r.sub.Unsubscribe() }

// dispatch passes an answer to its request. It drops answers of abandoned requests and answers beyond a request's
// room; the request notices the loss.
func (r *Requester) dispatch(m *nats.Msg) {
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

// Disconnected ends all waiting requests.
func (r *Requester) Disconnected() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.lost)
	r.lost = make(chan struct{})
}

// One sends a request and returns its answer. It fails with nats.ErrTimeout, nats.ErrNoResponders or
// nats.ErrDisconnected.
func (r *Requester) One(ctx context.Context, m *nats.Msg, timeout time.Duration) (answer *nats.Msg, err error) {
	err = r.Many(ctx, m, 1, timeout, func(m *nats.Msg) bool {
		answer = m
		return false
	})
	return answer, err
}

// Many sends a request with room for that many answers and calls visit for each until visit returns false. It fails
// with nats.ErrTimeout when no answer has arrived for the time quiet, with nats.ErrNoResponders when the subject has
// no subscriber, and with nats.ErrDisconnected when the connection is lost.
func (r *Requester) Many(ctx context.Context, m *nats.Msg, room int, quiet time.Duration, visit func(*nats.Msg) bool) error {
	token, ch, lost := r.register(room)
	defer r.forget(token)
	m.Reply = r.prefix + token
	if err := r.nc.PublishMsg(m); err != nil {
		return fmt.Errorf("request %s: %w", m.Subject, err)
	}
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	for {
		select {
		case a := <-ch:
			more, err := visitAll(a, ch, visit)
			if err != nil {
				return fmt.Errorf("request %s: %w", m.Subject, err)
			}
			if !more {
				return nil
			}
			timer.Reset(quiet)
		case <-timer.C:
			return fmt.Errorf("request %s: %w", m.Subject, nats.ErrTimeout)
		case <-lost:
			return fmt.Errorf("request %s: %w", m.Subject, nats.ErrDisconnected)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// visitAll visits an answer and those that wait after it, and returns whether more will come.
func visitAll(a *nats.Msg, waiting <-chan *nats.Msg, visit func(*nats.Msg) bool) (more bool, err error) {
	for {
		if bus.NoResponders(a) {
			return false, nats.ErrNoResponders
		}
		if !visit(a) {
			return false, nil
		}
		select {
		case a = <-waiting:
		default:
			return true, nil
		}
	}
}

func (r *Requester) register(room int) (token string, ch chan *nats.Msg, lost chan struct{}) {
	ch = make(chan *nats.Msg, room)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counter++
	token = strconv.FormatUint(r.counter, 36)
	r.waiting[token] = ch
	return token, ch, r.lost
}

func (r *Requester) forget(token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, token)
}
