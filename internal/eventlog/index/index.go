// Package index keeps a summary of each session, member and task for lists, and their questions to people, in a stream of
// its own, and reads it page by page. Logs remain the truth: an entry is made of a log and nothing else, so that any
// process may make it again.
package index

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Index reads and writes summaries. It is safe for concurrent use. It holds some numbers about the tenants that were asked
// for, and no summary.
type Index struct {
	conn   *bus.Conn
	log    *eventlog.Store
	counts *counts
}

// New returns the index over the connection. The store must be open as long as the index is used.
func New(conn *bus.Conn, log *eventlog.Store) *Index {
	return &Index{conn: conn, log: log, counts: newCounts()}
}

// tries bounds the attempts at one summary that other processes write at the same time.
const tries = 5

var (
	errRaced = errors.New("another process wrote the summary")
	errNone  = errors.New("no summary")
)

// get is the body of a direct get.
type get struct {
	Seq     uint64 `json:"seq,omitempty"`
	LastFor string `json:"last_by_subj,omitempty"`
	NextFor string `json:"next_by_subj,omitempty"`
	Batch   int    `json:"batch,omitempty"`
}

// one returns the message that the request asks for, errNone if the stream has none.
func (x *Index) one(ctx context.Context, q get) (*nats.Msg, error) {
	var out *nats.Msg
	if err := x.ask(ctx, q, 1, func(m *nats.Msg) bool {
		out = m
		return false
	}); err != nil {
		return nil, err
	}
	if status := out.Header.Get("Status"); len(out.Data) == 0 && status != "" {
		if status == "404" {
			return nil, errNone
		}
		return nil, fmt.Errorf("read the index: %s %s", status, out.Header.Get("Description"))
	}
	return out, nil
}

func (x *Index) ask(ctx context.Context, q get, room int, visit func(*nats.Msg) bool) error {
	body, err := json.Marshal(q)
	if err != nil {
		return fmt.Errorf("encode a read of the index: %w", err)
	}
	if err := x.log.DirectGet(ctx, subject.StreamIndex, body, room, visit); err != nil {
		return fault.New(fault.BusUnavailable).Wrap(fmt.Errorf("read the index: %w", err))
	}
	return nil
}

func number(m *nats.Msg, header string) uint64 {
	n, err := strconv.ParseUint(m.Header.Get(header), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// wrongLast reports whether a write was refused because another process wrote meanwhile.
func wrongLast(err error) bool {
	api, refused := errors.AsType[*jetstream.APIError](err)
	return refused && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}
