package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// bootstrapPause is how long Bootstrap waits before it asks again a cluster that
// has no leader yet.
const bootstrapPause = 250 * time.Millisecond

// bootstrapTry bounds one request: a cluster without a leader does not answer.
const bootstrapTry = 5 * time.Second

// Drift is one setting of a stream or bucket that is not as the code has it.
type Drift struct {
	Stream string
	Field  string
	Want   string
	Have   string
	Fixed  bool // can be mended in place; otherwise the stream has to be made anew
}

// String describes the drift in one line.
func (d Drift) String() string {
	return fmt.Sprintf("stream %s: %s is %s, should be %s", d.Stream, d.Field, d.Have, d.Want)
}

// Bootstrap creates what is missing and mends what differs. It refuses, with the
// names of stream and field, what NATS cannot change on a stream that exists. It is
// idempotent, safe to run from many processes at once, and waits within ctx for a
// cluster that is not ready.
func Bootstrap(ctx context.Context, c *Conn, t Topology) error {
	for _, want := range t.streams() {
		err := ensure(ctx, func(ctx context.Context) error { return ensureStream(ctx, c, want) })
		if err != nil {
			return fmt.Errorf("set up stream %s: %w", want.Name, err)
		}
	}
	kv := t.directory()
	err := ensure(ctx, func(ctx context.Context) error {
		_, err := c.js.CreateOrUpdateKeyValue(ctx, kv)
		return err
	})
	if err != nil {
		return fmt.Errorf("set up bucket %s: %w", kv.Bucket, err)
	}
	return nil
}

// ensure repeats f while the server says that it is not ready.
func ensure(ctx context.Context, f func(context.Context) error) error {
	for {
		try, cancel := context.WithTimeout(ctx, bootstrapTry)
		err := f(try)
		cancel()
		if err == nil || !transient(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(bootstrapPause):
		}
	}
}

func transient(err error) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.Code == 503 || api.ErrorCode == jetstream.JSErrCodeStreamNameInUse
	}
	return errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrDisconnected) || errors.Is(err, nats.ErrReconnectBufExceeded)
}

func ensureStream(ctx context.Context, c *Conn, want jetstream.StreamConfig) error {
	s, err := c.js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = c.js.CreateStream(ctx, want)
		return err
	}
	if err != nil {
		return err
	}
	drift := compare(want, s.CachedInfo().Config)
	if len(drift) == 0 {
		return nil
	}
	for _, d := range drift {
		if !d.Fixed {
			return errors.New(d.String() + "; this cannot be changed in place: back the stream up and make it anew")
		}
	}
	_, err = c.js.UpdateStream(ctx, want)
	return err
}

// Verify returns how the streams and the bucket differ from the code, nothing if
// they do not. A missing one is a drift of the field "stream".
func Verify(ctx context.Context, c *Conn, t Topology) ([]Drift, error) {
	var out []Drift
	for _, want := range t.streams() {
		d, err := verifyStream(ctx, c, want)
		if err != nil {
			return nil, err
		}
		out = append(out, d...)
	}
	kv := t.directory()
	bucket := jetstream.StreamConfig{Name: "KV_" + kv.Bucket}
	s, err := c.js.Stream(ctx, bucket.Name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return append(out, missing(bucket.Name)), nil
	case err != nil:
		return nil, fmt.Errorf("look at bucket %s: %w", kv.Bucket, err)
	}
	have := s.CachedInfo().Config
	out = append(out, differ(bucket.Name,
		field{"replicas", kv.Replicas, have.Replicas, true},
		field{"max_age", kv.TTL, have.MaxAge, true})...)
	return out, nil
}

func verifyStream(ctx context.Context, c *Conn, want jetstream.StreamConfig) ([]Drift, error) {
	s, err := c.js.Stream(ctx, want.Name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return []Drift{missing(want.Name)}, nil
	case err != nil:
		return nil, fmt.Errorf("look at stream %s: %w", want.Name, err)
	}
	return compare(want, s.CachedInfo().Config), nil
}

func missing(stream string) Drift {
	return Drift{Stream: stream, Field: "stream", Want: "present", Have: "missing", Fixed: true}
}

type field struct {
	name       string
	want, have any
	fixed      bool
}

// compare lists every setting that the code fixes. Replicas, retention and storage
// are compared too, although only the first can be changed on a living stream.
func compare(want, have jetstream.StreamConfig) []Drift {
	return differ(want.Name,
		field{"subjects", strings.Join(want.Subjects, ","), strings.Join(have.Subjects, ","), false},
		field{"retention", want.Retention, have.Retention, false},
		field{"storage", want.Storage, have.Storage, false},
		field{"replicas", max(want.Replicas, 1), have.Replicas, true},
		field{"discard", want.Discard, have.Discard, true},
		field{"max_age", want.MaxAge, have.MaxAge, true},
		field{"max_bytes", unlimited(want.MaxBytes), have.MaxBytes, true},
		field{"max_msg_size", int32(unlimited(int64(want.MaxMsgSize))), have.MaxMsgSize, true}, //nolint:gosec // it was an int32
		field{"max_msgs_per_subject", unlimited(want.MaxMsgsPerSubject), have.MaxMsgsPerSubject, true},
		field{"duplicate_window", want.Duplicates, have.Duplicates, true},
		field{"allow_direct", want.AllowDirect, have.AllowDirect, true},
		field{"allow_rollup_hdrs", want.AllowRollup, have.AllowRollup, true},
		field{"deny_delete", want.DenyDelete, have.DenyDelete, false},
		field{"allow_msg_schedules", want.AllowMsgSchedules, have.AllowMsgSchedules, false},
		field{"republish", want.RePublish != nil, have.RePublish != nil, true},
	)
}

// unlimited is how the server writes a limit that is not set.
func unlimited(n int64) int64 {
	if n == 0 {
		return -1
	}
	return n
}

func differ(stream string, fields ...field) []Drift {
	var out []Drift
	for _, f := range fields {
		if f.want != f.have {
			out = append(out, Drift{
				Stream: stream, Field: f.name, Want: fmt.Sprint(f.want), Have: fmt.Sprint(f.have), Fixed: f.fixed,
			})
		}
	}
	return out
}
