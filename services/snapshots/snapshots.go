// Package snapshots stores the folds of sessions and members, so that the first answer after a restart does not become slower
// with the log. The services and workers of these logs share the snapshots.
//
// A stored chat is a window of its log: the fold forgets the oldest finished runs, so that a snapshot has a bound. See
// package conversation.
package snapshots

import (
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/ledger"
)

// Every is the number of events between two snapshots of a log, and about the most that a restarted process reads of it: 40 ms of
// processor time. A snapshot of a long chat takes about 25 ms and half as many bytes as so many events.
const Every = 2000

// New returns the snapshots, which are not open.
func New(logger zerolog.Logger) *ledger.Snapshots[conversation.State] {
	return &ledger.Snapshots[conversation.State]{
		Encode: func(s *conversation.State) ([]byte, error) {
			if s.Seq == 0 || s.Deleted {
				return nil, nil
			}
			return s.Store()
		},
		Decode: conversation.Load,
		Seq:    func(s *conversation.State) uint64 { return s.Seq },
		Logger: logger, Every: Every, Lazy: true,
	}
}
