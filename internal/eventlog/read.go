package eventlog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/internal/eventlog/internal/entry"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// readCount and pageBytes bound one batched read. A batch lacks flow control, so a reader never requests more than
	// it can hold.
	readCount = 1024
	pageBytes = 512 << 10
	// pageCount bounds the entries that a worker takes from a ring or a check at a time.
	pageCount = 256
	// quiet bounds the wait for the next answer of a read. The slowest page measured (cold blocks, eight readers at a
	// time) took under a second.
	quiet = 3 * time.Second
)

// getRequest is the request body of direct get and of STREAM.MSG.GET.
type getRequest struct {
	Seq       uint64   `json:"seq,omitzero"`
	LastFor   string   `json:"last_by_subj,omitzero"`
	NextFor   string   `json:"next_by_subj,omitzero"`
	Batch     int      `json:"batch,omitzero"`
	MaxBytes  int      `json:"max_bytes,omitzero"`
	MultiLast []string `json:"multi_last,omitempty"`
	UpToSeq   uint64   `json:"up_to_seq,omitzero"`
}

// page is one batched read: it collects the answers, then holds the result.
type page struct {
	log     subject.Log
	at      Cursor
	entries []*Entry
	scanned uint64 // stream sequence of the last scanned message, 0 if none
	more    bool   // the replica that answered has more
	cut     bool   // a message did not belong there; the next read continues there
	err     error
}

// readPage reads up to that many entries that follow at from any replica, oldest first. It leaves out entries up to at.Seq, and
// ends before a message that does not follow its predecessor. An unreadable message is an error only at the head of
// the page. The page is empty if the log has nothing there.
func (s *Store) readPage(ctx context.Context, log subject.Log, at Cursor, most int) (*page, error) {
	p := &page{log: log, at: at}
	body, err := json.Marshal(getRequest{Seq: at.Stream + 1, NextFor: s.partitions.Event(log), Batch: most, MaxBytes: pageBytes})
	if err != nil {
		return p, fmt.Errorf("encode read of %s: %w", log, err)
	}
	m := &nats.Msg{Subject: directGet(s.partitions.Stream(log)), Data: body}
	if err := s.replies.Many(ctx, m, most+2, quiet, p.take); err != nil {
		return p, err
	}
	if len(p.entries) > 0 {
		return p, nil // the next read meets errors after the entries
	}
	return p, p.err
}

// take adds one answer and returns whether more will come.
func (p *page) take(m *nats.Msg) bool {
	if status := m.Header.Get("Status"); len(m.Data) == 0 && status != "" {
		p.more = p.cut || number(m, "Nats-Num-Pending") > 0
		p.err = errors.Join(p.err, statusError(status, m.Header.Get("Description")))
		return false
	}
	if !p.cut {
		p.add(m)
	}
	return true
}

// add appends the entry of an answer if it belongs there.
func (p *page) add(m *nats.Msg) {
	p.scanned = number(m, nats.JSSequence)
	last := p.at.Seq
	if n := len(p.entries); n > 0 {
		last = p.entries[n-1].Sequence
	}
	if seq := number(m, event.HeaderSeq); seq != 0 && seq <= last {
		return // before the position, or stored twice
	}
	e, err := directEntry(p.log, m)
	if err != nil || len(p.entries) > 0 && e.Sequence != last+1 {
		p.cut, p.err = true, err
		return
	}
	p.entries = append(p.entries, e)
}

// statusError turns the status of an answer without message into an error, or into nil for the end of a batch and an
// empty range.
func statusError(status, text string) error {
	if status == "204" || status == "404" {
		return nil
	}
	return fmt.Errorf("direct get: %s %s", status, text)
}

// directEntry decodes an answer of direct get.
func directEntry(log subject.Log, m *nats.Msg) (*Entry, error) {
	return entry.Decode(log.Name(), number(m, event.HeaderSeq), number(m, nats.JSSequence), m.Data)
}

func number(m *nats.Msg, header string) uint64 {
	n, err := strconv.ParseUint(m.Header.Get(header), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func directGet(stream string) string { return "$JS.API.DIRECT.GET." + stream }

// leaderTimeout bounds a request to the stream leader: measured 0.3 ms; a killed leader does not answer.
const leaderTimeout = time.Second

// storedMsg is a message in an answer of STREAM.MSG.GET.
type storedMsg struct {
	Subject string `json:"subject"`
	Seq     uint64 `json:"seq"`
	Hdrs    []byte `json:"hdrs"`
	Data    []byte `json:"data"`
}

// askLeader gets one message from the stream's leader, which has every acknowledged message. It returns errNone if
// the message does not exist.
func (s *Store) askLeader(ctx context.Context, stream string, q getRequest) (*storedMsg, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("encode read of %s: %w", stream, err)
	}
	m, err := s.replies.One(ctx, &nats.Msg{Subject: "$JS.API.STREAM.MSG.GET." + stream, Data: body}, leaderTimeout)
	if err != nil {
		return nil, err
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
	m, err := s.askLeader(ctx, s.partitions.Stream(log), getRequest{LastFor: s.partitions.Event(log)})
	if err != nil {
		return nil, err
	}
	return leaderEntry(log, m)
}

// leaderNext returns the first entry stored at or after the stream sequence, errNone if the log has none.
func (s *Store) leaderNext(ctx context.Context, log subject.Log, stream uint64) (*Entry, error) {
	m, err := s.askLeader(ctx, s.partitions.Stream(log), getRequest{Seq: max(stream, 1), NextFor: s.partitions.Event(log)})
	if err != nil {
		return nil, err
	}
	return leaderEntry(log, m)
}

// leaderEntry decodes an answer of the leader.
func leaderEntry(log subject.Log, m *storedMsg) (*Entry, error) {
	n, err := strconv.ParseUint(headerOf(m, event.HeaderSeq), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: %s at stream sequence %d has no %s", ErrUnreadable, log, m.Seq, event.HeaderSeq)
	}
	return entry.Decode(log.Name(), n, m.Seq, m.Data)
}

// headerOf returns a header of a stored message, "" if it is missing.
func headerOf(m *storedMsg, name string) string {
	h, err := nats.DecodeHeadersMsg(m.Hdrs)
	if err != nil {
		return ""
	}
	return h.Get(name)
}

// DirectGet sends the body of a direct get to any replica of a stream, and calls visit for each answer until visit returns
// false. It is for streams that are derived from logs; Read reads a log. It fails with nats.ErrTimeout,
// nats.ErrNoResponders or nats.ErrDisconnected.
func (s *Store) DirectGet(ctx context.Context, stream string, body []byte, room int, visit func(*nats.Msg) bool) error {
	return s.replies.Many(ctx, &nats.Msg{Subject: directGet(stream), Data: body}, room, quiet, visit)
}
