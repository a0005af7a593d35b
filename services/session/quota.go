package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/manager"
)

func (s *Service) openQuota(ctx context.Context) error {
	cfg := s.cfg.Quota
	cfg.Conn, cfg.Over = s.conn, s.desk.over
	if err := s.desk.quota.Open(ctx, audit.Sessions, cfg); err != nil {
		return fmt.Errorf("session service: %w", err)
	}
	return nil
}

func (s *Service) closeQuota() { s.desk.quota.Close() }

// bounded has a place of the quota taken before a session begins. Whoever opens one too
// many is told so, and nothing is in its log.
func (s *Service) bounded(cfg manager.Config[conversation.State]) manager.Config[conversation.State] {
	decide := cfg.Decide
	cfg.Decide = func(ctx context.Context, h *manager.Held[conversation.State], c cmd.Command, now time.Time) (manager.Decision, error) {
		if c.Verb != cmd.Open || !h.State.Created.IsZero() {
			return decide(ctx, h, c, now)
		}
		err := s.desk.quota.Hold(ctx, h.Log.Tenant, c.Principal, h.Log.Entity)
		if f, ok := errors.AsType[*fault.Fault](err); ok && f.Code == fault.QuotaExceeded {
			return manager.Decision{Aside: event.CommandRefusedData{CommandID: c.ID, Code: string(f.Code), Message: f.Message, Field: f.Field}}, nil
		}
		if err != nil {
			return manager.Decision{}, err
		}
		return decide(ctx, h, c, now)
	}
	return cfg
}

// over reports whether a session has ended: its log says so, or is not there any more.
func (d *desk) over(ctx context.Context, t id.Tenant, session id.Entity) (bool, error) {
	log := sessionLog(t, session)
	last, err := d.log.Last(ctx, log)
	if errors.Is(err, eventlog.ErrDeleted) {
		return true, nil
	}
	if err != nil || last.Seq == 0 {
		return err == nil, err
	}
	f, err := foldLog(ctx, d.log, log)
	return err == nil && f.state.Closed, err
}
