package eventlog

import (
	"context"
	"errors"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Ends returns the oldest entry that is left of the log and its newest, both nil if
// the log is empty. Every event whose append had succeeded before the call is
// counted. It costs two small questions to the leader of the stream, and returns
// fault.BusUnavailable wrapped if they cannot be answered for Options.Retry.
func (s *Store) Ends(ctx context.Context, log subject.Log) (first, last *Entry, err error) {
	err = s.retry(ctx, func() (err error) {
		if last, err = s.leaderLast(ctx, log); err != nil {
			last = nil
			return nothing(err)
		}
		if first, err = s.leaderNext(ctx, log, 1); err != nil {
			first, last = nil, nil // expired as a whole, meanwhile
		}
		return nothing(err)
	})
	return first, last, err
}

// nothing makes a log without entries no error.
func nothing(err error) error {
	if errors.Is(err, errNone) {
		return nil
	}
	return err
}
