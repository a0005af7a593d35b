package eventlog

import (
	"context"
	"errors"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Ends returns the oldest remaining entry of the log and the newest, both nil if the log is empty. It counts every
// event whose append succeeded before the call. It costs two small requests to the leader of the stream, and returns
// fault.BusUnavailable wrapped if the leader does not answer for Options.Retry.
func (s *Store) Ends(ctx context.Context, log subject.Log) (first, last *Entry, err error) {
	err = s.retry(ctx, func() (err error) {
		if last, err = s.leaderLast(ctx, log); err != nil {
			last = nil
			return nothing(err)
		}
		if first, err = s.leaderNext(ctx, log, 1); err != nil {
			first, last = nil, nil // expired completely, meanwhile
		}
		return nothing(err)
	})
	return first, last, err
}

// nothing turns errNone into nil.
func nothing(err error) error {
	if errors.Is(err, errNone) {
		return nil
	}
	return err
}
