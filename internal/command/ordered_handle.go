package command

import (
	"hash/fnv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// handle brings one command to an end: done, given up, or handed back. It is tried
// again in place, because handing it back would let time pass while nobody else may
// handle the partition anyway.
func (o *Ordered) handle(msg jetstream.Msg) {
	stop := keepAlive(msg, o.cfg.AckWait)
	defer stop()
	c, err := decode(msg)
	if err != nil {
		o.settle(o.u.bury(o.ctx, msg, command.Command{}, err.Error()))
		return
	}
	meta, err := msg.Metadata()
	if err != nil {
		o.settle(err)
		return
	}
	deliveries := int(meta.NumDelivered) //nolint:gosec // bounded by MaxDeliver
	for try := 1; ; try++ {
		d := Delivery{Attempt: deliveries + try - 1, Final: try == inPlace && deliveries >= o.cfg.MaxDeliver}
		err = call(o.ctx, o.cfg.Logger, o.h, c, d)
		switch {
		case err == nil:
			o.settle(msg.Ack())
			return
		case o.ctx.Err() != nil:
			_ = msg.Nak() // somebody else may have it at once
			return
		case isPermanent(err), d.Final:
			o.settle(o.u.bury(o.ctx, msg, c, err.Error()))
			return
		case try == inPlace:
			o.settle(msg.NakWithDelay(backoff(o.cfg.Backoff, try)))
			return
		}
		o.cfg.Logger.Warn().Err(err).Str("command", c.ID).Int("try", d.Attempt).Msg("a command failed and is tried again")
		select {
		case <-o.ctx.Done():
		case <-time.After(backoff(o.cfg.Backoff, try)):
		}
	}
}

// settle logs an answer that did not reach the server: the command is delivered
// again after the ack wait, which handlers have to bear anyway.
func (o *Ordered) settle(err error) {
	if err != nil {
		o.cfg.Logger.Warn().Err(err).Str("service", o.cfg.Service.String()).Msg("a command could not be settled")
	}
}

// owner returns the replica with the highest hash for the partition (rendezvous
// hashing): when one comes or goes, only its own partitions move. self counts even
// while the directory does not list it yet.
func owner(p subject.Partition, self id.Name, members []directory.Member) id.Name {
	best, most := self, weight(p, self)
	for _, m := range members {
		if w := weight(p, m.Instance); w > most || w == most && m.Instance.String() > best.String() {
			best, most = m.Instance, w
		}
	}
	return best
}

func weight(p subject.Partition, instance id.Name) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(p.String()))
	_, _ = h.Write([]byte(instance.String()))
	// FNV leaves the high bits of short inputs alike; a final mix spreads them.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x
}
