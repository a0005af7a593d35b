package team

import (
	"context"

	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/teamwork"
)

func (s *Service) openQuota(ctx context.Context) error {
	cfg := s.cfg.Quota
	cfg.Conn, cfg.Over = s.deps.Conn, s.over
	return s.quota.Open(ctx, audit.Teams, cfg)
}

// over reports whether a team has been shut down, or its log is deleted.
func (s *Service) over(ctx context.Context, t id.Tenant, team id.Entity) (over bool, err error) {
	err = s.logs.Get(subject.Log{Tenant: t, Kind: id.KindTeam, Entity: team}).Read(ctx, func(st *teamwork.State) error {
		over = !st.Created() || st.Closed()
		return nil
	})
	return over, err
}

// free gives the place of a team back that has been shut down.
func (s *Service) free(ctx context.Context, log subject.Log) error {
	if over, err := s.over(ctx, log.Tenant, log.Entity); err != nil || !over {
		return err
	}
	return s.quota.Free(ctx, log.Tenant, log.Entity)
}
