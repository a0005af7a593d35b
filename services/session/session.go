// Package session is the process manager of a session's life: it opens, closes and
// expires sessions, notes how far clients have read, says where a returning client
// goes on, and takes the state of a session to another place. Runs are the business
// of package pipeline.
package session

import (
	"context"
	"time"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/manager"
)

// DefaultTTL closes a session a day after its last event.
const DefaultTTL = 24 * time.Hour

var expireTimer = id.MustName("expire")

// Config holds the settings of the service. Zero values mean the defaults.
type Config struct {
	TTL     time.Duration // how long a session outlives its last event; default DefaultTTL
	AckWait time.Duration // how long one command may be silent; default of command.OrderedConfig
	Now     func() time.Time
}

// Service handles the commands of sessions. It is a lifecycle component; any
// number of replicas may run.
type Service struct {
	*manager.Manager
	cfg Config
}

// New returns a service that is not started.
func New(cfg Config, deps manager.Deps) (*Service, error) {
	if cfg.TTL <= 0 {
		cfg.TTL = DefaultTTL
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Service{cfg: cfg}
	m, err := manager.New(manager.Config{
		Service: cmd.Session, Timer: expireTimer, Rules: conversation.Rules{TTL: cfg.TTL}, AckWait: cfg.AckWait, Now: cfg.Now,
		FollowUp: s.followUp, Fired: func(time.Time) id.Name { return cmd.Expire },
	}, deps)
	if err != nil {
		return nil, err
	}
	s.Manager = m
	return s, nil
}

// followUp arms the timer that ends an idle session.
func (s *Service) followUp(ctx context.Context, h *manager.Held, c cmd.Command) error {
	if (c.Verb == cmd.Open || c.Verb == cmd.Expire) && !h.State.Closed {
		return s.armExpiry(ctx, h)
	}
	return nil
}

// armExpiry sets the session's one timer to the moment at which it will have been
// idle for the TTL. When it fires too early, because the session has been used
// since, it is armed again from there.
func (s *Service) armExpiry(ctx context.Context, h *manager.Held) error {
	due := h.State.Updated.Add(s.cfg.TTL)
	if now := s.cfg.Now(); due.Before(now) {
		due = now.Add(time.Minute) // a run is on: look again soon
	}
	return s.SetTimer(ctx, h, due)
}
