package command

import "github.com/nats-io/nats.go"

// Deafen lets a component that is not started lose every hint.
func Deafen(o *Ordered) {
	for _, p := range o.positions {
		p.hints = make(chan *nats.Msg)
	}
}

// Resting returns the number of resting partitions.
func Resting(o *Ordered) (n int) {
	for _, p := range o.positions {
		if p.resting.Load() {
			n++
		}
	}
	return n
}
