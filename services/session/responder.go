package session

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/internal/audit"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/eventlog/index"
	"github.com/waggle-dev/waggle/internal/payload"
	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/internal/signature"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/acks"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/session/seal"
)

// responder answers the requests about sessions: where a client resumes, and which state
// may be taken elsewhere and back. It reads logs as they are now and keeps nothing,
// so any replica may answer.
type responder struct {
	conn     *bus.Conn
	log      *eventlog.Store
	commands *command.Sender
	acks     *acks.Acks
	keys     seal.Keys
	ttl      time.Duration
	now      func() time.Time
	logger   zerolog.Logger
	quota    quota.Entities // of open sessions
	audit    *audit.Writer
	payloads *payload.Store
	access   access.Policy
	index    *index.Index

	signatures *signature.Verifier
	snapshots  *ledger.Snapshots[conversation.State] // open once the service is
}

// acknowledge handles cmd.Ack: it stores how far a client has read. A repeat does no harm; a
// position beyond the end of the log counts as its end.
func (d *responder) acknowledge(ctx context.Context, c cmd.Command) error {
	var in cmd.AckEvents
	if err := c.Decode(&in); err != nil {
		return command.Permanent(err)
	}
	log := sessionLog(c.Tenant, c.Key)
	last, err := d.log.Last(ctx, log)
	if errors.Is(err, eventlog.ErrDeleted) {
		d.logger.Debug().Stringer("log", log).Msg("acknowledgement skipped: session deleted")
		return nil
	}
	if err != nil {
		return err
	}
	seq := min(in.Seq, last.Seq)
	if in.ClientID == "" || seq == 0 {
		d.logger.Debug().Str("session", c.Key.String()).Msg("acknowledgement skipped: empty")
		return nil
	}
	return d.acks.Put(ctx, log, id.EntityFromExternal(in.ClientID), seq)
}

// expiry returns the timer that ends an idle session.
func expiry(log subject.Log) subject.Timer {
	return subject.Timer{Service: cmd.Session, Tenant: log.Tenant, Key: log.Entity, Name: expireTimer}
}

func sessionLog(t id.Tenant, session id.Entity) subject.Log {
	return subject.Log{Tenant: t, Kind: id.KindSession, Entity: session}
}

var expireTimer = id.MustName("expire")
