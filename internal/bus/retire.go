package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// headerSchedule holds the time of a schedule.
const headerSchedule = "Nats-Schedule"

// freeSubjects gives the retired stream of timers other subjects, so that its successors can have them. It does
// nothing without such a stream.
func freeSubjects(ctx context.Context, c *Conn) error {
	s, err := c.js.Stream(ctx, subject.RetiredTimers)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	cfg := s.CachedInfo().Config
	if len(cfg.Subjects) != 1 || cfg.Subjects[0] != subject.RetiredTimerSubjects {
		return nil
	}
	cfg.Subjects = []string{subject.RetiringTimers}
	_, err = c.js.UpdateStream(ctx, cfg)
	return err
}

// Replace moves the messages of retired streams into their successors, which must exist, and removes the streams. It may
// run many times, and in several processes: it never replaces a message of a successor.
func Replace(ctx context.Context, c *Conn) error {
	if err := moveTimers(ctx, c); err != nil {
		return fmt.Errorf("move timers: %w", err)
	}
	if err := moveQuotas(ctx, c); err != nil {
		return fmt.Errorf("move holdings of quotas: %w", err)
	}
	return nil
}

func moveTimers(ctx context.Context, c *Conn) error {
	return replace(ctx, c, subject.RetiredTimers, func(m *jetstream.RawStreamMsg) *nats.Msg {
		header := nats.Header{}
		at, target := m.Header.Get(headerSchedule), m.Header.Get("Nats-Schedule-Target")
		if at == "" { // it was due: it is due again at once
			target = m.Subject
			at = "@at " + time.Now().UTC().Truncate(time.Second).Format(time.RFC3339)
		}
		timer, err := subject.ParseTimer(target)
		if err != nil {
			return nil
		}
		header.Set(headerSchedule, at)
		header.Set("Nats-Schedule-Target", target)
		return &nats.Msg{Subject: timer.Set(), Header: header, Data: m.Data}
	}, func(*jetstream.StreamInfo) bool { return true })
}

// moveQuotas leaves the retired bucket as long as processes of an earlier version follow it: their holdings still
// count there. The next Bootstrap moves what they wrote.
func moveQuotas(ctx context.Context, c *Conn) error {
	name := subject.BucketStream(subject.RetiredQuota)
	prefix := subject.BucketSubject(subject.RetiredQuota, "")
	return replace(ctx, c, name, func(m *jetstream.RawStreamMsg) *nats.Msg {
		key := strings.TrimPrefix(m.Subject, prefix)
		q, err := subject.ParseQuotaKey(key)
		if err != nil || len(m.Data) == 0 {
			return nil
		}
		return &nats.Msg{Subject: subject.BucketSubject(subject.QuotaBucket(q.Resource), key), Header: nats.Header{}, Data: m.Data}
	}, func(info *jetstream.StreamInfo) bool { return info.State.Consumers == 0 })
}

// replace moves the newest message of each subject of a stream, in the form that change returns (nil = leave it out),
// and then removes the stream if it may.
func replace(ctx context.Context, c *Conn, name string, change func(*jetstream.RawStreamMsg) *nats.Msg, may func(*jetstream.StreamInfo) bool) error {
	s, err := Persist(ctx, c, "waiting for stream "+name, func(ctx context.Context) (jetstream.Stream, error) { return c.js.Stream(ctx, name) })
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	newest, err := newestOf(ctx, c, s)
	if err != nil {
		return err
	}
	for _, old := range newest {
		m := change(old)
		if m == nil {
			continue
		}
		_, err := Persist(ctx, c, "waiting to move messages of "+name, func(ctx context.Context) (any, error) {
			return c.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequencePerSubject(0))
		})
		if api, ok := errors.AsType[*jetstream.APIError](err); ok && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
			continue // it was moved before, or a newer one is there
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.Subject, err)
		}
	}
	if !may(s.CachedInfo()) {
		c.log.Warn().Str("stream", name).Msg("retired stream kept for processes of an earlier version; rerun \"waggle bootstrap\" after the upgrade")
		return nil
	}
	if err := c.js.DeleteStream(ctx, name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	c.log.Info().Str("stream", name).Int("messages", len(newest)).Msg("stream of an earlier version replaced")
	return nil
}

// newestOf returns the newest message of each subject of a stream.
func newestOf(ctx context.Context, c *Conn, s jetstream.Stream) (map[string]*jetstream.RawStreamMsg, error) {
	out := map[string]*jetstream.RawStreamMsg{}
	for seq := uint64(1); ; {
		m, err := Persist(ctx, c, "waiting for retired stream", func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
			return s.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(">"))
		})
		if errors.Is(err, jetstream.ErrMsgNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		out[m.Subject], seq = m, m.Sequence+1
	}
}
