package command

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrClaimLost ends a handler's context when the bus has not confirmed the claim for the ack wait: another replica
// may have the command by now.
var ErrClaimLost = errors.New("the claim on the command was not confirmed in time")

// progress is JetStream's "still working on it", sent as a request: the answer proves that the server received it.
var progress = []byte("+WPI")

// claim is the exclusive hold on one message. It is renewed every third of the ack wait until its release, even while
// a stopped handler winds up.
type claim struct {
	ctx    context.Context // the handler's context: ends with its parent or the claim
	lose   context.CancelCauseFunc
	end    context.CancelFunc // of the renewal
	ended  chan struct{}
	nc     *nats.Conn
	msg    jetstream.Msg
	wait   time.Duration
	expiry time.Time // when the server may deliver the message to another replica
	lost   bool
}

func hold(parent context.Context, nc *nats.Conn, msg jetstream.Msg, ackWait time.Duration) *claim {
	k := &claim{
		ended: make(chan struct{}), nc: nc, msg: msg, wait: ackWait,
		expiry: time.Now().Add(ackWait * 9 / 10), // the message has spent some of the ack wait on its way
	}
	k.ctx, k.lose = context.WithCancelCause(parent)
	life, end := context.WithCancel(context.WithoutCancel(parent))
	k.end = end
	go k.keep(life)
	return k
}

func (k *claim) keep(life context.Context) {
	defer close(k.ended)
	tick := time.NewTicker(k.wait / 3)
	defer tick.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-tick.C:
		}
		k.renew(life)
		if time.Now().After(k.expiry) {
			k.lost = true
			k.lose(ErrClaimLost)
			return
		}
	}
}

// renew asks the server for another ack wait. Without an answer the expiry stays.
func (k *claim) renew(life context.Context) {
	ctx, cancel := context.WithDeadline(life, k.expiry)
	defer cancel()
	asked := time.Now()
	if _, err := k.nc.RequestWithContext(ctx, k.msg.Reply(), progress); err == nil {
		k.expiry = asked.Add(k.wait)
	}
}

// release ends the renewal and reports whether the claim held until now.
func (k *claim) release() bool {
	k.end()
	<-k.ended
	k.lose(nil)
	return !k.lost
}
