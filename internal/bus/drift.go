package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Drift is one setting of a stream or bucket that differs from the code.
type Drift struct {
	Stream string
	Field  string
	Want   string
	Have   string
	Fixed  bool // Bootstrap can repair it; otherwise the stream must be created again
	Audit  bool // of the audit log: ChangeAudit repairs it, Bootstrap does not
	Cost   bool // affects only costs: Bootstrap repairs it, Verify leaves it out
}

// String describes the drift in one line.
func (d Drift) String() string {
	return fmt.Sprintf("stream %s: %s is %s, should be %s", d.Stream, d.Field, d.Have, d.Want)
}

// Verify returns the differences between the streams and buckets and the code. A missing stream is a drift of the
// field "stream". Verify ignores settings that do not affect what Waggle promises, such as placement or compression.
func Verify(ctx context.Context, c *Conn, t Topology) ([]Drift, error) {
	drift, err := verify(ctx, c, t, nil)
	return significant(drift), err
}

// significant returns the drift that affects more than costs.
func significant(all []Drift) []Drift {
	return slices.DeleteFunc(all, func(d Drift) bool { return d.Cost })
}

// verify checks the named streams, or all if only is nil.
func verify(ctx context.Context, c *Conn, t Topology, only []string) ([]Drift, error) {
	var out []Drift
	look := func(name string, against func(jetstream.StreamConfig) []Drift) error {
		if only != nil && !slices.Contains(only, name) {
			return nil
		}
		s, err := c.js.Stream(ctx, name)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			out = append(out, Drift{Stream: name, Field: "stream", Want: "present", Have: "missing", Fixed: true})
		case err != nil:
			return fmt.Errorf("look at stream %s: %w", name, err)
		default:
			for _, d := range against(s.CachedInfo().Config) {
				d.Audit = d.Stream == subject.StreamAudit
				out = append(out, d)
			}
		}
		return nil
	}
	for _, want := range t.streams(c.partitions) {
		if err := look(want.Name, func(have jetstream.StreamConfig) []Drift { return compare(want, have) }); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// partitionsField is the field of a drift that no process can work with: it would look for logs in other streams.
const partitionsField = "partitions"

// ErrPartitions is wrapped by the errors about an installation with another number of partitions than configured.
var ErrPartitions = errors.New("the streams have another number of partitions")

// otherPartitions returns ErrPartitions if the drift has one of the number of partitions.
func otherPartitions(drift []Drift) error {
	for _, d := range drift {
		if d.Field == partitionsField {
			return fmt.Errorf("%w: this installation has %s, and nats.partitions is %s; set nats.partitions to %s", ErrPartitions, d.Have, d.Want, d.Have)
		}
	}
	return nil
}

type field struct {
	name       string
	want, have any
	mend       bool
}

// compare lists every setting that Waggle's guarantees depend on, and the compression. It marks settings that NATS refuses
// to change on an existing stream, and subjects, which other streams may have taken, as not repairable.
func compare(want, have jetstream.StreamConfig) []Drift {
	drift := differ(
		want.Name,
		field{partitionsField, partitionsOf(want), partitionsOf(have), false},
		field{"subjects", strings.Join(want.Subjects, ","), strings.Join(have.Subjects, ","), false},
		field{"retention", want.Retention, have.Retention, false},
		field{"storage", want.Storage, have.Storage, false},
		field{"mirror", want.Mirror != nil, have.Mirror != nil, false},
		field{"sources", len(want.Sources), len(have.Sources), true},
		field{"sealed", want.Sealed, have.Sealed, false},
		field{"no_ack", want.NoAck, have.NoAck, true},
		field{"subject_transform", want.SubjectTransform != nil, have.SubjectTransform != nil, true},
		field{"republish", want.RePublish != nil, have.RePublish != nil, true},
		field{"replicas", max(want.Replicas, 1), have.Replicas, true},
		field{"discard", want.Discard, have.Discard, true},
		field{"max_age", want.MaxAge, have.MaxAge, true},
		field{"max_bytes", unlimited(want.MaxBytes), unlimited(have.MaxBytes), true},
		field{"max_msgs", unlimited(want.MaxMsgs), unlimited(have.MaxMsgs), true},
		field{"max_msgs_per_subject", unlimited(want.MaxMsgsPerSubject), unlimited(have.MaxMsgsPerSubject), true},
		field{"max_msg_size", unlimited(int64(want.MaxMsgSize)), unlimited(int64(have.MaxMsgSize)), true},
		field{"duplicate_window", want.Duplicates, have.Duplicates, true},
		field{"allow_direct", want.AllowDirect, have.AllowDirect, true},
		field{"allow_rollup_hdrs", want.AllowRollup, have.AllowRollup, true},
		field{"deny_delete", want.DenyDelete, have.DenyDelete, want.DenyDelete},
		field{"deny_purge", want.DenyPurge, have.DenyPurge, want.DenyPurge},
		field{"subject_delete_marker_ttl", want.SubjectDeleteMarkerTTL, have.SubjectDeleteMarkerTTL, true},
		field{"allow_msg_ttl", want.AllowMsgTTL, have.AllowMsgTTL, want.AllowMsgTTL},
		field{"allow_atomic", want.AllowAtomicPublish, have.AllowAtomicPublish, true},
		field{"allow_msg_schedules", want.AllowMsgSchedules, have.AllowMsgSchedules, want.AllowMsgSchedules},
	)
	if want.Compression != have.Compression {
		drift = append(drift, Drift{
			Stream: want.Name, Field: "compression", Want: want.Compression.String(), Have: have.Compression.String(), Fixed: true, Cost: true,
		})
	}
	return drift
}

// unlimited returns the server's value for a limit that is not set.
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
				Stream: stream, Field: f.name, Want: fmt.Sprint(f.want), Have: fmt.Sprint(f.have), Fixed: f.mend,
			})
		}
	}
	return out
}
