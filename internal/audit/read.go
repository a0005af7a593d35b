package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// followPause is the interval of the search for new records: short enough for people.
const followPause = 500 * time.Millisecond

// Query selects records. Zero fields do not restrict the selection.
type Query struct {
	Tenant    id.Tenant
	Principal string
	Entity    string
	Action    string
	Since     time.Time
	Until     time.Time
	Follow    bool // continue with new records until ctx ends
}

func (q Query) matches(r audit.Record) bool {
	switch {
	case q.Principal != "" && r.Principal != q.Principal, q.Entity != "" && r.Entity != q.Entity,
		q.Action != "" && r.Action != q.Action, r.Time.Before(q.Since), !q.Until.IsZero() && r.Time.After(q.Until):
		return false
	}
	return true
}

// Read visits the selected records, oldest first. An error of visit ends Read and is returned. Read returns nil when
// ctx ends while it follows.
func Read(ctx context.Context, conn *bus.Conn, q Query, visit func(audit.Record) error) error {
	s, err := conn.JS().Stream(ctx, subject.StreamAudit)
	if err != nil {
		return fmt.Errorf("open the audit log: %w", err)
	}
	seq, err := begin(ctx, s, q.Since)
	if err != nil {
		return err
	}
	filter := subject.AuditAll
	if !q.Tenant.IsZero() {
		filter = subject.AuditOf(q.Tenant)
	}
	for {
		m, err := s.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(filter))
		if err != nil {
			if on, err := wait(ctx, q, err); !on {
				return err
			}
			continue
		}
		seq = m.Sequence + 1
		var r audit.Record
		if err := json.Unmarshal(m.Data, &r); err != nil {
			return fmt.Errorf("record %d of the audit log: %w", m.Sequence, err)
		}
		if q.matches(r) {
			if err := visit(r); err != nil {
				return err
			}
		}
	}
}

// wait reports whether to continue after the last record: true after a moment if the query follows. Otherwise it
// returns the reason for the end.
func wait(ctx context.Context, q Query, err error) (on bool, _ error) {
	switch {
	case ctx.Err() != nil && q.Follow:
		return false, nil
	case !errors.Is(err, jetstream.ErrMsgNotFound):
		return false, fmt.Errorf("read the audit log: %w", err)
	case !q.Follow:
		return false, nil
	}
	select {
	case <-ctx.Done():
		return false, nil
	case <-time.After(followPause):
		return true, nil
	}
}

// slack bounds the delay between a record's time and its storage: the time for which a writer retries.
const slack = time.Minute

// begin returns a sequence before which all records are older than the time.
func begin(ctx context.Context, s jetstream.Stream, since time.Time) (uint64, error) {
	info, err := s.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("look at the audit log: %w", err)
	}
	low, high := max(info.State.FirstSeq, 1), info.State.LastSeq+1
	if since.IsZero() {
		return low, nil
	}
	// Records are stored at or after their time, never before it, apart from differences of clocks.
	since = since.Add(-slack)
	for low < high {
		mid := low + (high-low)/2
		m, err := s.GetMsg(ctx, mid, jetstream.WithGetMsgSubject(subject.AuditAll))
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			high = mid
		case err != nil:
			return 0, fmt.Errorf("read the audit log: %w", err)
		case m.Time.Before(since):
			low = max(m.Sequence, mid) + 1
		default:
			high = mid
		}
	}
	return low, nil
}
