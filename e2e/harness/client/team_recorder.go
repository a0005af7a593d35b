package client

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
)

// Recorded is a frame of a team's log as it came.
type Recorded struct {
	Raw string
	Pos uint64 // its position
	At  time.Time
}

// Event is the sequence in the log of the event that the frame is of.
func (s Recorded) Event() uint64 { return s.Pos >> 4 }

// TeamRecorder is a viewer of a team, flattened and from its beginning, that keeps what it is
// sent and when, and looks at nothing else: there may be thousands of frames a second.
// After each disconnect it resumes after the last frame that it has. It is safe
// for concurrent use.
type TeamRecorder struct {
	t     testing.TB
	path  string
	conn  *Reconnecting
	stop  context.CancelFunc
	ended chan struct{}

	mu     sync.Mutex
	frames []Recorded
	faults []string // positions that did not grow
	resume chan struct{}
	news   chan struct{}
}

// RecordTeam watches the path at the gateways in turn until the test ends.
func RecordTeam(t testing.TB, path string, addrs ...string) *TeamRecorder {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &TeamRecorder{t: t, path: path, stop: cancel, ended: make(chan struct{}), news: make(chan struct{})}
	p.conn = NewReconnecting(ReconnectOptions{Addrs: addrs, Path: p.url, Take: func(raw string) { p.read(ctx, raw) }})
	go func() {
		defer close(p.ended)
		_ = p.conn.Run(ctx) // the test waits for frames that do not come
	}()
	t.Cleanup(p.Close)
	return p
}

// Close ends the recording.
func (p *TeamRecorder) Close() {
	p.stop()
	<-p.ended
}

// url returns the path of the next connection.
func (p *TeamRecorder) url() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("/ws/%s?after=%d", p.path, p.last())
}

// read records a frame, once Halt's resume has been called.
func (p *TeamRecorder) read(ctx context.Context, raw string) {
	p.mu.Lock()
	resume := p.resume
	p.mu.Unlock()
	if resume != nil {
		select {
		case <-resume:
		case <-ctx.Done():
		}
	}
	p.take([]byte(raw))
}

// last returns the position of the newest frame. mu is held.
func (p *TeamRecorder) last() uint64 {
	if n := len(p.frames); n > 0 {
		return p.frames[n-1].Pos
	}
	return 0
}

func (p *TeamRecorder) take(raw []byte) {
	s := Recorded{Raw: string(raw), At: time.Now()}
	var f struct {
		Payload struct {
			Envelope struct {
				Sequence uint64 `json:"sequence"`
			} `json:"team_stream_event_envelope"`
		} `json:"payload"`
	}
	err := json.Unmarshal(raw, &f)
	s.Pos = f.Payload.Envelope.Sequence
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		p.faults = append(p.faults, err.Error())
	case s.Pos == 0:
		return // a greeting, or how the members are
	case s.Pos <= p.last():
		p.faults = append(p.faults, fmt.Sprintf("%d after %d: %s", s.Pos, p.last(), s.Raw))
	default:
		p.frames = append(p.frames, s)
	}
	close(p.news)
	p.news = make(chan struct{})
}

// Break ends the connection without a close frame.
func (p *TeamRecorder) Break() { p.conn.Cut() }

// Halt stops reading, without a word to the server, until the returned function is
// called.
func (p *TeamRecorder) Halt() (resume func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	gate := make(chan struct{})
	p.resume = gate
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.resume = nil
		close(gate)
	}
}

// UntilEvent waits for the last frames of the event with the sequence, or of a later one.
func (p *TeamRecorder) UntilEvent(seq uint64) {
	p.t.Helper()
	p.Until(fmt.Sprintf("event %d", seq), func(s Recorded) bool { return s.Event() > seq || s.Pos == seq<<4|15 })
}

// Until waits for a frame that ok accepts and returns it.
func (p *TeamRecorder) Until(what string, ok func(Recorded) bool) Recorded {
	p.t.Helper()
	late := time.After(process.MaxWait)
	for from := 0; ; {
		p.mu.Lock()
		all, news := p.frames, p.news
		p.mu.Unlock()
		for ; from < len(all); from++ {
			if ok(all[from]) {
				return all[from]
			}
		}
		select {
		case <-news:
		case <-late:
			require.FailNow(p.t, "it never came: "+what, "%d frames came", from)
		}
	}
}

// Frames returns the frames so far, how often the line broke, and what came twice or out
// of order.
func (p *TeamRecorder) Frames() (shots []Recorded, breaks int, faults []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Recorded(nil), p.frames...), p.conn.Returns(), append([]string(nil), p.faults...)
}

// Frame returns the frame, decoded.
func (s Recorded) Frame() TeamFrame {
	f := TeamFrame{Raw: s.Raw, Sequence: s.Pos}
	_ = json.Unmarshal([]byte(s.Raw), &f) // other texts have no members
	return f
}

// ReceivedAt is when the event of the frame was made, as the frame says it.
func (f TeamFrame) ReceivedAt() string {
	var e struct {
		At string `json:"received_at"`
	}
	_ = json.Unmarshal(f.Member("team_stream_event_envelope"), &e) // frames outside the log have no time
	return e.At
}
