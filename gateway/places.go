package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

const (
	// joinPatience is longer than the election after a lost leader of the directory's
	// bucket (4.2 to 7.4 s measured).
	joinPatience = 10 * time.Second
	// maxPeer bounds what a peer says of itself, encoded: a heartbeat repeats it every
	// ten seconds. A hundred tools with ordinary schemas fit.
	maxPeer = 64 << 10
	// Every watcher of the directory hears of each change: of one peer's, a few at
	// once and one a second from then on.
	changeRate  = 1
	changeBurst = 4
	// movePause spaces the looks at who has lost its place: a thousand peers that come
	// back at once are looked at ten times a second and not a thousand times.
	movePause = 100 * time.Millisecond
)

// place is the entry of a peer in the directory. It outlives the peer's socket for a
// while, in case that the peer comes back.
type place struct {
	s       *Server
	what    id.Name
	name    id.Name
	self    id.Name // of the connection
	lease   *directory.Lease
	changes *rate.Limiter

	mu    sync.Mutex
	peer  command.Peer
	stale bool        // the directory has not been told of the last change
	said  bool        // a change that the peer asked for may not be in this copy of the directory
	away  *time.Timer // ends the place of a peer whose socket is gone
	over  bool        // it is given up
}

// placeName returns under which name all connections of one peer are listed: ids
// are any text, and are the same in two tenants.
func placeName(tenant id.Tenant, peer string) (id.Name, error) {
	sum := sha256.Sum256([]byte(tenant.String() + "\x00" + peer))
	return id.ParseName("p" + base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
}

// take gives a peer a place in the directory. Which of two places of the same peer is
// the younger one is for the directory to say, and for no gateway's clock or view.
func (s *Server) take(ctx context.Context, peer command.Peer, connection id.Name) (*place, error) {
	name, err := placeName(peer.Tenant, peer.ID)
	if err != nil {
		return nil, err
	}
	p := &place{
		s: s, what: command.PeerWhat(peer.Kind), name: name, self: connection, peer: peer,
		changes: rate.NewLimiter(changeRate, changeBurst),
	}
	p.peer.Since = s.dep.Clock().UTC().Round(0)
	data, err := encodePeer(p.peer)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, joinPatience)
	defer cancel()
	p.lease, err = s.dep.Directory.Join(ctx, directory.Member{
		What: p.what, Name: name, Instance: connection, Data: data, Started: p.peer.Since,
	})
	if err != nil {
		return nil, fault.New(fault.BusUnavailable).Wrap(err)
	}
	s.mu.Lock()
	s.places[p] = struct{}{}
	s.mu.Unlock()
	s.placesChanged()
	return p, nil
}

func encodePeer(p command.Peer) (json.RawMessage, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return nil, fault.New(fault.InvalidField).Wrap(fmt.Errorf("encode a peer: %w", err))
	}
	if len(data) > maxPeer {
		return nil, fault.Newf(fault.InvalidField, "What you say of yourself is too long: %d bytes. It may have %d KB.", len(data), maxPeer>>10)
	}
	return data, nil
}

// who returns the peer as its gateway knows it.
func (p *place) who() command.Peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.peer
}

// held reports whether the place is still the peer's.
func (p *place) held() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.over
}

// change changes what the directory says of the peer, now or, if that has changed
// often of late, at a tick. It does not block.
func (p *place) change(f func(*command.Peer)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return nil
	}
	peer := p.peer
	f(&peer)
	data, err := encodePeer(peer)
	if err != nil {
		return err
	}
	p.peer = peer
	if p.stale = !p.changes.Allow(); p.stale {
		return nil
	}
	return p.lease.Set(data)
}

// confirm makes sure that the peer's next request, on any replica of a service, sees the
// change that it asked for: now, unless the directory is told of it later, and then
// before that request (shown).
func (p *place) confirm(ctx context.Context) error {
	p.mu.Lock()
	p.said = true
	later := p.stale
	p.mu.Unlock()
	if later {
		return nil
	}
	return p.shown(ctx)
}

// shown waits until this gateway's copy of the directory has what the peer was last
// confirmed to be.
func (p *place) shown(ctx context.Context) error {
	p.mu.Lock()
	stale, done := p.stale, p.over || !p.said
	p.mu.Unlock()
	if done {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, joinPatience)
	defer cancel()
	if stale {
		if err := p.changes.Wait(ctx); err != nil {
			return fault.New(fault.BusUnavailable).Wrap(err)
		}
		if err := p.flush(); err != nil {
			return err
		}
	}
	if err := p.lease.Shown(ctx); err != nil {
		return fault.New(fault.BusUnavailable).Wrap(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = false
	return nil
}

// flush tells the directory what the peer is.
func (p *place) flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return nil
	}
	data, err := encodePeer(p.peer)
	if err != nil {
		return err
	}
	p.stale = false
	return p.lease.Set(data)
}

// tick tells the directory what it has not been told yet.
func (p *place) tick() {
	p.mu.Lock()
	stale := p.stale
	p.mu.Unlock()
	if !stale {
		return
	}
	if err := p.change(func(*command.Peer) {}); err != nil {
		p.s.dep.Logger.Warn().Err(err).Msg("fail to publish state of peer")
	}
}

// leave gives the place up and takes it off the directory.
func (p *place) leave() {
	if p.giveUp() {
		p.s.leave(p.lease)
	}
}

// giveUp reports whether the place had not been given up before.
func (p *place) giveUp() bool {
	p.mu.Lock()
	over := p.over
	p.over = true
	if p.away != nil {
		p.away.Stop()
	}
	p.mu.Unlock()
	p.s.mu.Lock()
	delete(p.s.places, p)
	p.s.mu.Unlock()
	return !over
}

// linger keeps the place of a peer whose socket has ended until it is back, or for
// the time that it has for that.
func (p *place) linger() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	p.peer.Online, p.peer.Load = false, 0
	if data, err := encodePeer(p.peer); err == nil {
		err = p.lease.Set(data)
		if err != nil {
			p.s.dep.Logger.Warn().Err(err).Msg("fail to publish absence of peer")
		}
	}
	p.away = time.AfterFunc(p.s.cfg.Peers.Grace, func() { p.s.async(p.leave) })
}

// supplanted gives the place up that a younger one of the same peer has come for.
// Replicas of a service have the same id and do not supplant each other, unless one
// is away.
func (p *place) supplanted() {
	p.mu.Lock()
	stays := p.away == nil && p.peer.Kind == command.PeerService
	p.mu.Unlock()
	if !stays && p.giveUp() {
		p.s.async(func() { p.s.leave(p.lease) })
	}
}

// async runs f, unless the gateway has been stopped.
func (s *Server) async(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.wg.Go(f)
	}
}

// placesChanged has it looked who has lost its place. It does not block.
func (s *Server) placesChanged() {
	select {
	case s.moved <- struct{}{}:
	default:
	}
}

// keepPlaces gives up places for which a younger one is in the directory, until the
// gateway stops.
func (s *Server) keepPlaces() {
	defer s.dep.Directory.Watch(s.placesChanged)()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-pause.C:
		}
		select {
		case <-s.ctx.Done():
			return
		case <-s.moved:
			s.supplant()
			pause.Reset(movePause)
		}
	}
}

// supplant gives up the places of which the directory has a younger one, of another
// connection. All gateways come to the same end, in whatever order they hear of places.
func (s *Server) supplant() {
	type key struct{ what, name id.Name }
	youngest := map[key]directory.Member{}
	for _, what := range []id.Name{command.WhatAgent, command.WhatService, command.WhatClient} {
		for _, m := range s.dep.Directory.All(what) {
			if k := (key{what, m.Name}); m.Joined > youngest[k].Joined {
				youngest[k] = m
			}
		}
	}
	for _, p := range s.allPlaces() {
		if m := youngest[key{p.what, p.name}]; m.Joined > p.lease.Joined() && m.Instance != p.self {
			p.supplanted()
		}
	}
}

func (s *Server) allPlaces() []*place {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*place, 0, len(s.places))
	for p := range s.places {
		all = append(all, p)
	}
	return all
}

// lapsePlaces ends the gateway's part in the places of peers that are to come back to
// another one: the directory says that they are away, until their leases run out.
func (s *Server) lapsePlaces() {
	ctx, cancel := context.WithTimeout(context.Background(), leavePatience)
	defer cancel()
	for _, p := range s.allPlaces() {
		if !p.giveUp() {
			continue
		}
		if err := p.lease.Shown(ctx); err != nil {
			s.dep.Logger.Debug().Err(err).Msg("fail to withdraw peer from directory")
		}
		p.lease.Lapse()
	}
}
