package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bucket"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/task/roster"
)

const (
	// watchPause spaces the attempts to watch the bucket.
	watchPause = time.Second
	// putLimit bounds one attempt to write to it.
	putLimit = 5 * time.Second
)

// entries remembers agents and providers that were seen, and keeps the roster's copy of the
// bucket. The copy is a hint: a request for an agent that it does not have yet is
// refused a moment too soon. It is safe for concurrent use.
type entries struct {
	copy *roster.Roster
	conn *bus.Conn
	kv   jetstream.KeyValue
	log  zerolog.Logger
	end  context.CancelFunc
	done chan struct{}
}

func newEntries(to *roster.Roster) *entries { return &entries{copy: to} }

// open reads the bucket and begins to follow it.
func (r *entries) open(ctx context.Context, conn *bus.Conn, log zerolog.Logger) error {
	kv, err := conn.Bucket(ctx, subject.BucketRegistry)
	if err != nil {
		return err
	}
	r.conn, r.kv, r.log, r.done = conn, kv, log, make(chan struct{})
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	r.end = end
	ready := make(chan struct{})
	go r.follow(life, sync.OnceFunc(func() { close(ready) }))
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		r.close()
		return fmt.Errorf("read the bucket %s: %w", subject.BucketRegistry, ctx.Err())
	}
}

// close ends the watch. Without a watch it does nothing.
func (r *entries) close() {
	if r.end == nil {
		return
	}
	r.end()
	<-r.done
}

// follow keeps the copy until life ends.
func (r *entries) follow(life context.Context, ready func()) {
	defer close(r.done)
	for life.Err() == nil {
		if err := r.read(life, ready); err != nil && life.Err() == nil {
			r.log.Debug().Err(err).Msg("registry will be reloaded")
			select {
			case <-life.Done():
			case <-time.After(watchPause):
			}
		}
	}
}

var errWatchOver = errors.New("the watch has ended")

func (r *entries) read(life context.Context, ready func()) error {
	w, err := bucket.Watch(life, r.conn, subject.BucketRegistry, ">")
	if err != nil {
		return err
	}
	defer w.Stop()
	read := map[string]struct{}{} // keys of the first reading; nil after it
	for {
		select {
		case <-life.Done():
			return nil
		case <-w.Over():
			return errWatchOver
		case m := <-w.Updates():
			e := bucket.EntryOf(subject.BucketRegistry, m)
			if e == nil {
				if read != nil { // a deletion may have been missed since the reading before
					r.copy.Unstore(func(p cmd.Participant) bool {
						_, there := read[keyOf(p)]
						return !there
					})
				}
				read = nil
				ready()
				continue
			}
			if r.take(e); read != nil && !e.Gone {
				read[e.Key] = struct{}{}
			}
		}
	}
}

// take takes an entry of the bucket. Teams have entries, too, which do not count here.
func (r *entries) take(e *bucket.Change[[]byte]) {
	_, what, _, err := subject.ParseRegistryKey(e.Key)
	if err != nil || what != cmd.WhatAgent && what != cmd.WhatService && what != cmd.WhatClient {
		return
	}
	var p cmd.Participant
	if !e.Gone && json.Unmarshal(e.Value, &p) == nil && keyOf(p) == e.Key {
		r.copy.Store(p)
		return
	}
	r.copy.Unstore(func(p cmd.Participant) bool { return keyOf(p) == e.Key })
}

func keyOf(p cmd.Participant) string {
	return subject.RegistryKey(p.Tenant, cmd.ParticipantWhat(p.Kind), id.EntityFromExternal(p.ID))
}

// note stores a participant in the form that it has when it is away. It writes a known participant again only if
// again is set, which renews the entry.
func (r *entries) note(ctx context.Context, p cmd.Participant, again bool) error {
	p = remembered(p)
	raw, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode a participant: %w", err)
	}
	key := keyOf(p)
	if !again && r.has(p, raw) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, putLimit)
	defer cancel()
	if _, err := r.kv.Put(ctx, key, raw); err != nil {
		return fault.New(fault.BusUnavailable).Wrap(fmt.Errorf("remember %s %s: %w", p.Kind, p.ID, err))
	}
	return nil
}

func (r *entries) has(p cmd.Participant, raw []byte) bool {
	known, ok := r.copy.Stored(roster.KeyOf(p))
	if !ok {
		return false
	}
	old, err := json.Marshal(known)
	return err == nil && string(old) == string(raw)
}

// remembered is how a participant is remembered when it has gone.
func remembered(p cmd.Participant) cmd.Participant {
	p.Gateway, p.Connection, p.Principal, p.Load = "", "", "", 0
	p.Online, p.Status, p.Since, p.Full, p.Knows, p.Holds = false, cmd.StatusInactive, time.Time{}, false, false, nil
	return p
}
