package stream

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/payload"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// maxLoads bounds how many connections load an object at once, each of which may take
	// as much memory as the largest message.
	maxLoads = 16
	// loadPause is the pause after an object could not be had.
	loadPause = time.Second
)

// Loader loads stored data for the connections of a gateway, a few at a time. It is safe
// for concurrent use.
type Loader struct {
	store  *payload.Store
	logger zerolog.Logger
	loads  chan struct{}
}

// NewLoader returns a loader of the objects in the store.
func NewLoader(store *payload.Store, logger zerolog.Logger) *Loader {
	return &Loader{store: store, logger: logger, loads: make(chan struct{}, maxLoads)}
}

// Do calls load as soon as few enough connections load something.
func (l *Loader) Do(ctx context.Context, load func() error) error {
	select {
	case l.loads <- struct{}{}:
		defer func() { <-l.loads }()
		return load()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Event returns an event with the data that it refers to, however long that takes within
// ctx.
func (l *Loader) Event(ctx context.Context, log subject.Log, e event.Event) (whole event.Event, err error) {
	if data, err := event.Refers(e); err != nil || data == nil { // as nearly always
		return e, nil //nolint:nilerr // its data is shown as it is
	}
	err = l.Insist(ctx, log, func() (err error) {
		whole, err = l.store.Event(ctx, log.Tenant, e)
		return err
	})
	return whole, err
}

// Insist calls load for a log until it succeeds, the data is lost or ctx ends.
func (l *Loader) Insist(ctx context.Context, log subject.Log, load func() error) error {
	for {
		err := l.Do(ctx, load)
		if err == nil || ctx.Err() != nil || errors.Is(err, fault.New(fault.PayloadLost)) {
			return err
		}
		l.logger.Warn().Err(err).Stringer("log", log).Msg("loading of stored data will be retried")
		select {
		case <-time.After(loadPause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Slot is the room of one connection for stored data: one object at a time.
type Slot struct{ held chan struct{} }

// NewSlot returns a free slot.
func NewSlot() *Slot { return &Slot{make(chan struct{}, 1)} }

// Hold waits until the slot is free and takes it, until release is called. done ends the
// wait with net.ErrClosed.
func (s *Slot) Hold(ctx context.Context, done <-chan struct{}) (release func(), err error) {
	select {
	case s.held <- struct{}{}:
		return func() { <-s.held }, nil
	case <-done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
