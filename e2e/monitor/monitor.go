// Package monitor rebuilds a session from the bus alone. Its only dependency
// beyond the standard library is nats.go: it is the proof that events describe
// themselves, and an example for people who write monitors.
package monitor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// Event is what a monitor needs of an event.
type Event struct {
	Type     string          `json:"type"`
	Subject  string          `json:"subject"` // tenant.kind.id
	Sequence uint64          `json:"sequence"`
	Data     json.RawMessage `json:"data"`
}

// Session collects the events of one session by sequence.
type Session struct {
	log string

	mu      sync.Mutex
	events  map[uint64]Event
	changed chan struct{}
}

// Follow subscribes to everything that is announced and keeps the events of one
// log, named tenant.kind.id.
func Follow(nc *nats.Conn, log string) (*Session, error) {
	s := &Session{log: log, events: map[uint64]Event{}, changed: make(chan struct{}, 1)}
	_, err := nc.Subscribe("live.>", func(m *nats.Msg) {
		if strings.HasPrefix(m.Subject, "live."+log+".") {
			s.add(m.Data)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe to live.>: %w", err)
	}
	return s, nc.Flush()
}

func (s *Session) add(raw []byte) {
	var e Event
	if json.Unmarshal(raw, &e) != nil || e.Subject != s.log {
		return
	}
	s.mu.Lock()
	s.events[e.Sequence] = e
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// History reads what was stored before Follow, with one batched direct get.
func (s *Session) History(ctx context.Context, nc *nats.Conn) error {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.log))
	p := fmt.Sprintf("%02d", h.Sum32()%16)
	inbox := nc.NewRespInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return fmt.Errorf("subscribe to the answer: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	ask := fmt.Sprintf(`{"seq":1,"next_by_subj":"evt.%s.%s","batch":1000}`, p, s.log)
	if err := nc.PublishRequest("$JS.API.DIRECT.GET.EVT_"+p, inbox, []byte(ask)); err != nil {
		return fmt.Errorf("ask for the history: %w", err)
	}
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return fmt.Errorf("read the history: %w", err)
		}
		if m.Header.Get("Status") != "" { // 204: end of the batch, 404: nothing stored yet
			return nil
		}
		s.add(m.Data)
	}
}

// Wait waits until n events of the type have arrived and none before the last is
// missing.
func (s *Session) Wait(ctx context.Context, eventType string, n int) error {
	for {
		all := s.Events()
		whole := len(all) > 0 && all[len(all)-1].Sequence == uint64(len(all))
		found := 0
		for _, e := range all {
			if e.Type == eventType {
				found++
			}
		}
		if whole && found >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.changed:
		}
	}
}

// Events returns the session's events in order.
func (s *Session) Events() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Event, 0, len(s.events))
	for _, e := range s.events {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Event) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return out
}

// Text returns the conversation: who said what, one line a message.
func (s *Session) Text() []string {
	var out []string
	for _, e := range s.Events() {
		var d struct {
			Content string `json:"content"`
		}
		if json.Unmarshal(e.Data, &d) != nil {
			continue
		}
		switch e.Type {
		case "run.started":
			out = append(out, "user: "+d.Content)
		case "run.completed":
			out = append(out, "agent: "+d.Content)
		}
	}
	return out
}
