package participants

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

const (
	// joinMaxWait is longer than the election after a lost leader of the directory's
	// bucket (4.2 to 7.4 s measured).
	joinMaxWait = 10 * time.Second
	// maxParticipant bounds what a participant says of itself, encoded: a heartbeat repeats it every
	// ten seconds. A hundred tools with ordinary schemas fit.
	maxParticipant = 64 << 10
	// Every watcher of the directory hears of each change: of one participant's, a few at
	// once and one a second from then on.
	changeRate  = 1
	changeBurst = 4
	// movePause spaces the looks at who has lost its presence: a thousand participants that come
	// back at once are looked at ten times a second and not a thousand times.
	movePause = 100 * time.Millisecond
)

// presenceName returns under which name all connections of one participant are listed: ids
// are any text, and are the same in two tenants.
func presenceName(tenant id.Tenant, participant string) (id.Name, error) {
	sum := sha256.Sum256([]byte(tenant.String() + "\x00" + participant))
	return id.ParseName("p" + base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
}

// take gives a participant a presence in the directory. Which of two presences of the same participant is
// the younger one is for the directory to say, and for no gateway's clock or view.
func (s *Swarm) take(ctx context.Context, participant command.Participant, connection id.Name) (*presence, error) {
	name, err := presenceName(participant.Tenant, participant.ID)
	if err != nil {
		return nil, err
	}
	p := &presence{
		s: s, what: command.ParticipantWhat(participant.Kind), name: name, self: connection, participant: participant,
		changes: rate.NewLimiter(changeRate, changeBurst),
	}
	p.participant.Since = s.g.Clock().UTC().Round(0)
	data, err := encodeParticipant(p.participant)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, joinMaxWait)
	defer cancel()
	p.lease, err = s.g.Directory.Join(ctx, directory.Member{
		What: p.what, Name: name, Instance: connection, Data: data, Started: p.participant.Since,
	})
	if err != nil {
		return nil, fault.New(fault.BusUnavailable).Wrap(err)
	}
	s.mu.Lock()
	s.presences[p] = struct{}{}
	s.mu.Unlock()
	s.presencesChanged()
	return p, nil
}

func encodeParticipant(p command.Participant) (json.RawMessage, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return nil, fault.New(fault.InvalidField).Wrap(fmt.Errorf("encode a participant: %w", err))
	}
	if len(data) > maxParticipant {
		return nil, fault.Newf(fault.InvalidField, "The description in your registration is too long: %d bytes. Send at most %d KB.", len(data), maxParticipant>>10)
	}
	return data, nil
}

// registered returns the participant as its gateway knows it.
func (p *presence) registered() command.Participant {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.participant
}

// held reports whether the presence is still the participant's.
func (p *presence) held() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.over
}

// change changes what the directory says of the participant, now or, if that has changed
// often of late, at a tick. It does not block.
func (p *presence) change(f func(*command.Participant)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return nil
	}
	participant := p.participant
	f(&participant)
	data, err := encodeParticipant(participant)
	if err != nil {
		return err
	}
	p.participant = participant
	if p.stale = !p.changes.Allow(); p.stale {
		return nil
	}
	return p.lease.Set(data)
}

// confirm makes sure that the participant's next request, on any replica of a service, sees the
// change that it asked for: now, unless the directory is told of it later, and then
// before that request (shown).
func (p *presence) confirm(ctx context.Context) error {
	p.mu.Lock()
	p.said = true
	later := p.stale
	p.mu.Unlock()
	if later {
		return nil
	}
	return p.shown(ctx)
}

// shown waits until this gateway's copy of the directory has what the participant was last
// edge.Confirmed to be.
func (p *presence) shown(ctx context.Context) error {
	p.mu.Lock()
	stale, done := p.stale, p.over || !p.said
	p.mu.Unlock()
	if done {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, joinMaxWait)
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

// flush tells the directory what the participant is.
func (p *presence) flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return nil
	}
	data, err := encodeParticipant(p.participant)
	if err != nil {
		return err
	}
	p.stale = false
	return p.lease.Set(data)
}

// tick tells the directory what it has not been told yet.
func (p *presence) tick() {
	p.mu.Lock()
	stale := p.stale
	p.mu.Unlock()
	if !stale {
		return
	}
	if err := p.change(func(*command.Participant) {}); err != nil {
		p.s.g.Logger.Warn().Err(err).Msg("failed to publish participant state")
	}
}

// leave gives the presence up and takes it off the directory.
func (p *presence) leave() {
	if p.giveUp() {
		p.s.leave(p.lease)
	}
}

// giveUp reports whether the presence had not been given up before.
func (p *presence) giveUp() bool {
	p.mu.Lock()
	over := p.over
	p.over = true
	if p.away != nil {
		p.away.Stop()
	}
	p.mu.Unlock()
	p.s.mu.Lock()
	delete(p.s.presences, p)
	p.s.mu.Unlock()
	return !over
}

// startGrace keeps the presence of a participant whose socket has ended until it is back, or for
// the time that it has for that.
func (p *presence) startGrace() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	p.participant.Online, p.participant.Load = false, 0
	if data, err := encodeParticipant(p.participant); err == nil {
		err = p.lease.Set(data)
		if err != nil {
			p.s.g.Logger.Warn().Err(err).Msg("failed to publish participant absence")
		}
	}
	p.away = time.AfterFunc(p.s.cfg.Grace, func() { p.s.g.Later(p.leave) })
}

// supplanted gives the presence up that a younger one of the same participant has come for.
// Replicas of a service have the same id and do not supplant each other, unless one
// is away.
func (p *presence) supplanted() {
	p.mu.Lock()
	stays := p.away == nil && p.participant.Kind == command.ParticipantService
	p.mu.Unlock()
	if !stays && p.giveUp() {
		p.s.g.Later(func() { p.s.leave(p.lease) })
	}
}

// presencesChanged has it looked who has lost its presence. It does not block.
func (s *Swarm) presencesChanged() {
	select {
	case s.moved <- struct{}{}:
	default:
	}
}

// Run gives up presences for which a younger one is in the directory, until the
// gateway stops.
func (s *Swarm) Run() {
	defer s.g.Directory.Watch(s.presencesChanged)()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-s.g.Life.Done():
			return
		case <-pause.C:
		}
		select {
		case <-s.g.Life.Done():
			return
		case <-s.moved:
			s.supplant()
			pause.Reset(movePause)
		}
	}
}

// supplant gives up the presences of which the directory has a younger one, of another
// connection. All gateways come to the same end, in whatever order they hear of presences.
func (s *Swarm) supplant() {
	type key struct{ what, name id.Name }
	youngest := map[key]directory.Member{}
	for _, what := range []id.Name{command.WhatAgent, command.WhatService, command.WhatClient} {
		for _, m := range s.g.Directory.All(what) {
			if k := (key{what, m.Name}); m.Joined > youngest[k].Joined {
				youngest[k] = m
			}
		}
	}
	for _, p := range s.all() {
		if m := youngest[key{p.what, p.name}]; m.Joined > p.lease.Joined() && m.Instance != p.self {
			p.supplanted()
		}
	}
}

func (s *Swarm) all() []*presence {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*presence, 0, len(s.presences))
	for p := range s.presences {
		all = append(all, p)
	}
	return all
}

// Stop ends the gateway's part in the presences of participants that are to come back to
// another one: the directory says that they are away, until their leases run out.
func (s *Swarm) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveMaxWait)
	defer cancel()
	for _, p := range s.all() {
		if !p.giveUp() {
			continue
		}
		if err := p.lease.Shown(ctx); err != nil {
			s.g.Logger.Debug().Err(err).Msg("failed to remove participant from directory")
		}
		p.lease.Lapse()
	}
}
