package eventlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// farther is how many times farther from the end each further guess is.
const farther = 8

// locate returns a position from which a read of the entries after at begins without a scan of the log from its head: at
// itself where it has a stream sequence or is near the head, otherwise an entry at most a page before it. Most readers missed
// the last entries, so it looks near the end first, where a server that was just started has read its file already. Then it halves
// the stretch of the stream in which the entry can be: 9 requests in a log of 100,000 entries, where a scan reads 390 pages.
//
// Each answer bounds the position from below, so that a replica that lags, or lacks expired entries, costs a longer read and
// never an entry.
func (s *Store) locate(ctx context.Context, log subject.Log, at Cursor) (Cursor, error) {
	if at.Stream > 0 || at.Seq <= pageCount {
		return at, nil
	}
	end, err := s.anyLast(ctx, log)
	switch {
	case errors.Is(err, errNone):
		return at, nil
	case err != nil:
		return at, err
	}
	low, high := Cursor{}, end.Cursor()
	if high.Seq <= at.Seq {
		return Cursor{Seq: at.Seq, Stream: high.Stream}, nil
	}
	last := high.Stream
	near := min(last, high.Seq-at.Seq+pageCount/2) // the entry is as far from the end, or farther if other logs are busy
	for at.Seq-low.Seq > pageCount && high.Stream-low.Stream > 1 {
		middle := low.Stream + (high.Stream-low.Stream)/2
		if guess := last - near; guess > middle && guess < high.Stream {
			middle = guess
		}
		near = min(farther*near, last)
		e, err := s.anyNext(ctx, log, middle)
		switch {
		case err != nil && !errors.Is(err, errNone):
			return at, err
		case err == nil && e.Sequence <= at.Seq:
			low = e.Cursor()
		default:
			high.Stream = middle
		}
	}
	return Cursor{Seq: at.Seq, Stream: low.Stream}, nil
}

// anyNext returns the first entry that a replica has at or after the stream sequence, errNone if it has none.
func (s *Store) anyNext(ctx context.Context, log subject.Log, stream uint64) (*Entry, error) {
	return s.askAny(ctx, log, getRequest{Seq: max(stream, 1), NextFor: s.partitions.Event(log)})
}

// anyLast returns the last entry of the log from any replica, errNone if the replica has none. It may be a few
// milliseconds old.
func (s *Store) anyLast(ctx context.Context, log subject.Log) (*Entry, error) {
	return s.askAny(ctx, log, getRequest{LastFor: s.partitions.Event(log)})
}

// askAny gets one entry from any replica, errNone if that has none.
func (s *Store) askAny(ctx context.Context, log subject.Log, q getRequest) (*Entry, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("encode read of %s: %w", log, err)
	}
	m, err := s.replies.One(ctx, &nats.Msg{Subject: directGet(s.partitions.Stream(log)), Data: body}, leaderTimeout)
	if err != nil {
		return nil, err
	}
	if status := m.Header.Get("Status"); len(m.Data) == 0 && status != "" {
		if status == "404" {
			return nil, errNone
		}
		return nil, statusError(status, m.Header.Get("Description"))
	}
	return directEntry(log, m)
}
