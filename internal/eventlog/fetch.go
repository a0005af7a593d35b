package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// pageCount and pageBytes bound one batched read. There is no flow control
	// within a batch, so a reader never asks for more than it can hold.
	pageCount = 256
	pageBytes = 512 << 10
	// quiet is how long a read waits for the next answer. The slowest page
	// measured (cold blocks, eight readers at a time) took under a second.
	quiet = 3 * time.Second
	// leaderTimeout bounds a question to the stream leader: measured 0.3 ms; a
	// leader that was just killed does not answer at all.
	leaderTimeout = time.Second
)

// getRequest is the request body of direct get and of STREAM.MSG.GET.
type getRequest struct {
	Seq       uint64   `json:"seq,omitempty"`
	LastFor   string   `json:"last_by_subj,omitempty"`
	NextFor   string   `json:"next_by_subj,omitempty"`
	Batch     int      `json:"batch,omitempty"`
	MaxBytes  int      `json:"max_bytes,omitempty"`
	MultiLast []string `json:"multi_last,omitempty"`
	UpToSeq   uint64   `json:"up_to_seq,omitempty"`
}

// page is the result of one batched read.
type page struct {
	entries []*Entry
	scanned uint64 // stream sequence of the last message looked at, 0 = none
	more    bool   // the replica that answered has more
}

// readPage reads the entries that follow at from any replica, oldest first.
// Entries up to at.Seq are left out. Where a message does not follow its
// predecessor the page ends before it. An unreadable message is an error only at
// the head of the page. Nothing there is an empty page.
func (s *Store) readPage(ctx context.Context, log subject.Log, at Cursor) (page, error) {
	body, err := json.Marshal(getRequest{Seq: at.Stream + 1, NextFor: log.Event(), Batch: pageCount, MaxBytes: pageBytes})
	if err != nil {
		return page{}, fmt.Errorf("encode read of %s: %w", log, err)
	}
	var p page
	var bad error
	cut := false
	last := at.Seq
	err = s.replies.many(ctx, directGet(log.Stream()), body, pageCount+2, quiet, func(m *nats.Msg) bool {
		if status := m.Header.Get("Status"); len(m.Data) == 0 && status != "" {
			p.more = p.more || cut || number(m, "Nats-Num-Pending") > 0
			bad = errors.Join(bad, statusError(status, m.Header.Get("Description")))
			return false
		}
		if cut {
			return true
		}
		p.scanned = number(m, "Nats-Sequence")
		if seq := number(m, event.HeaderSeq); seq != 0 && seq <= at.Seq {
			return true
		}
		e, err := directEntry(log, m)
		switch {
		case err != nil:
			cut, bad = true, err
		case len(p.entries) > 0 && e.Sequence <= last:
			return true
		case len(p.entries) > 0 && e.Sequence != last+1:
			cut = true
		default:
			p.entries, last = append(p.entries, e), e.Sequence
		}
		return true
	})
	if len(p.entries) > 0 && err == nil {
		bad = nil // the next read meets it at its head
	}
	return p, errors.Join(err, bad)
}

// statusError turns the status of an answer without message into an error. The
// end of a batch and an empty range are none.
func statusError(status, text string) error {
	if status == "204" || status == "404" {
		return nil
	}
	return fmt.Errorf("direct get: %s %s", status, text)
}

// directEntry decodes an answer of direct get.
func directEntry(log subject.Log, m *nats.Msg) (*Entry, error) {
	return decodeStored(log.Name(), number(m, event.HeaderSeq), number(m, "Nats-Sequence"), m.Data)
}

func number(m *nats.Msg, header string) uint64 {
	n, err := strconv.ParseUint(m.Header.Get(header), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func directGet(stream string) string { return "$JS.API.DIRECT.GET." + stream }

// storedMsg is a message as STREAM.MSG.GET returns it.
type storedMsg struct {
	Subject string `json:"subject"`
	Seq     uint64 `json:"seq"`
	Hdrs    []byte `json:"hdrs"`
	Data    []byte `json:"data"`
}

// askLeader gets one message from the stream's leader, which has every
// acknowledged message. It returns errNone if there is none.
func (s *Store) askLeader(ctx context.Context, stream string, q getRequest) (*storedMsg, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("encode read of %s: %w", stream, err)
	}
	limited, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	m, err := s.nc.RequestWithContext(limited, "$JS.API.STREAM.MSG.GET."+stream, body)
	if err != nil {
		return nil, ended(ctx, fmt.Errorf("ask leader of %s: %w", stream, err))
	}
	var answer struct {
		Message *storedMsg `json:"message"`
		Error   *apiError  `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return nil, fmt.Errorf("answer of the leader of %s: %w", stream, err)
	}
	switch {
	case answer.Error != nil && answer.Error.ErrCode == codeNoMessage:
		return nil, errNone
	case answer.Error != nil:
		return nil, fmt.Errorf("ask leader of %s: %w", stream, answer.Error)
	case answer.Message == nil:
		return nil, fmt.Errorf("answer of the leader of %s is empty", stream)
	}
	return answer.Message, nil
}

// leaderLast returns the last entry of the log, errNone if the log is empty.
func (s *Store) leaderLast(ctx context.Context, log subject.Log) (*Entry, error) {
	return s.leaderEntry(ctx, log, getRequest{LastFor: log.Event()})
}

// leaderNext returns the first entry stored at or after the stream sequence,
// errNone if there is none.
func (s *Store) leaderNext(ctx context.Context, log subject.Log, stream uint64) (*Entry, error) {
	return s.leaderEntry(ctx, log, getRequest{Seq: max(stream, 1), NextFor: log.Event()})
}

func (s *Store) leaderEntry(ctx context.Context, log subject.Log, q getRequest) (*Entry, error) {
	m, err := s.askLeader(ctx, log.Stream(), q)
	if err != nil {
		return nil, err
	}
	seq, _ := headerOf(m, event.HeaderSeq)
	n, err := strconv.ParseUint(seq, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: %s at stream sequence %d has no %s", ErrUnreadable, log, m.Seq, event.HeaderSeq)
	}
	return decodeStored(log.Name(), n, m.Seq, m.Data)
}

// headerOf returns a header of a stored message.
func headerOf(m *storedMsg, name string) (string, bool) {
	h, err := nats.DecodeHeadersMsg(m.Hdrs)
	if err != nil {
		return "", false
	}
	v := h.Get(name)
	return v, v != ""
}

// anyLast returns the last entry of the log as some replica has it, errNone if it
// has none. It may be a few milliseconds old.
func (s *Store) anyLast(ctx context.Context, log subject.Log) (*Entry, error) {
	body, err := json.Marshal(getRequest{LastFor: log.Event()})
	if err != nil {
		return nil, fmt.Errorf("encode read of %s: %w", log, err)
	}
	limited, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	m, err := s.nc.RequestWithContext(limited, directGet(log.Stream()), body)
	if err != nil {
		return nil, ended(ctx, fmt.Errorf("read last of %s: %w", log, err))
	}
	if status := m.Header.Get("Status"); len(m.Data) == 0 && status != "" {
		if status == "404" {
			return nil, errNone
		}
		return nil, statusError(status, m.Header.Get("Description"))
	}
	return directEntry(log, m)
}
