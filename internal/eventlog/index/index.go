// Package index keeps a summary of each session, member and task for lists, and their questions to people, in a stream of
// its own, and reads it page by page. Logs remain the truth: an entry is made of a log and nothing else, so that any
// process may make it again.
//
// Announcements are hints of which log has changed. A catch-up reads what they missed, from the first message that no
// summary has taken in; far behind, it reads the last header of each log. Writes are conditional on the revision of an
// entry, so two writers do no harm.
//
// Questions have entries of their own: below .open. while they wait, below .over. afterwards. They are written before the
// summary that their events belong to. A question that is over leaves a marker among the open ones for a while, against
// which a slower writer loses. An answer never depends on the index: the log decides.
//
// A page estimates the part of the stream that holds it and reads that. The server counts the subjects of a tenant for each
// batch, so pages of a large tenant ask for single messages, and totals of long lists are up to a minute old.
package index

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/eventlog/newest"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Index reads and writes summaries. It is safe for concurrent use. It holds some numbers about the tenants that were asked for, and no
// summary.
type Index struct {
	conn   *bus.Conn
	log    *eventlog.Store
	newest newest.Reader
	exact  newest.Reader // counts anew for each page

	markerLife time.Duration
}

// New returns the index over the connection. The store must be open as long as the index is used.
func New(conn *bus.Conn, log *eventlog.Store) *Index {
	end := func(ctx context.Context) (newest.End, error) {
		s, err := conn.JS().Stream(ctx, subject.StreamIndex)
		if err != nil {
			return newest.End{}, err
		}
		return newest.End{Sequence: s.CachedInfo().State.LastSeq, Created: s.CachedInfo().Created}, nil
	}
	return &Index{conn: conn, log: log, newest: newest.Reader{
		Log: log, Stream: subject.StreamIndex, Large: &newest.Large{End: end, Counts: newest.NewCounts()},
	}, exact: newest.Reader{Log: log, Stream: subject.StreamIndex}, markerLife: markerLife}
}

// markerLife is how long a marker stands for a removed entry: longer than any writer works with what it has read.
const markerLife = 2 * time.Minute

// tries bounds the attempts at one summary that other processes write at the same time.
const tries = 5

var errRaced = errors.New("another process wrote the summary")

// wrongLast reports whether a write was refused because another process wrote meanwhile.
func wrongLast(err error) bool {
	api, refused := errors.AsType[*jetstream.APIError](err)
	return refused && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}
