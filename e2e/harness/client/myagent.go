package client

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/proof"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	"github.com/waggle-dev/waggle/sdk/go/link"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

// MyAgent is a client that comes back whenever its connection breaks. Frames are
// kept; each has to fit its schema.
type MyAgent struct {
	*sdk.Client
	t     testing.TB
	ended chan struct{}

	mu         sync.Mutex
	frames     []sdk.Frame // those of the log
	unnumbered []sdk.Frame
	losses     int
	gaps       []error
	news       chan struct{} // replaced at each frame
	failure    error
}

// OpenMyAgent runs a device until the test ends.
func OpenMyAgent(t testing.TB, opt sdk.Options) *MyAgent {
	t.Helper()
	d := &MyAgent{Client: sdk.New(opt), t: t, ended: make(chan struct{}), news: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(d.ended)
		err := d.Run(ctx, d)
		d.mu.Lock()
		defer d.mu.Unlock()
		if !errors.Is(err, context.Canceled) {
			d.failure = err
		}
		close(d.news)
		d.news = make(chan struct{})
	}()
	t.Cleanup(func() {
		cancel()
		<-d.ended
	})
	return d
}

// Message sends a text and returns its id.
func (d *MyAgent) Message(text string, metadata map[string]any) string {
	id, err := d.Client.Message(text, metadata)
	assert.NoError(d.t, err)
	return id
}

// Respond answers a question.
func (d *MyAgent) Respond(stepID string, content map[string]any) {
	assert.NoError(d.t, d.Client.Respond(stepID, content))
}

// Frame implements client.Handler.
func (d *MyAgent) Frame(f sdk.Frame) {
	proof.MyAgentReceived(d.t, f)
	d.mu.Lock()
	defer d.mu.Unlock()
	if f.Seq > 0 {
		d.frames = append(d.frames, f)
	} else {
		d.unnumbered = append(d.unnumbered, f)
	}
	close(d.news)
	d.news = make(chan struct{})
}

// Lost implements client.Handler.
func (d *MyAgent) Lost(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.losses++
	if _, ok := errors.AsType[*link.GapError](err); ok {
		d.gaps = append(d.gaps, err)
	}
}

// Frames returns the frames of the log so far.
func (d *MyAgent) Frames() []sdk.Frame {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]sdk.Frame(nil), d.frames...)
}

// Raw returns the frames of the log so far as they came.
func (d *MyAgent) Raw() []string {
	frames := d.Frames()
	out := make([]string, len(frames))
	for i, f := range frames {
		out[i] = string(f.Raw)
	}
	return out
}

// Losses returns how often the connection was lost, and the gaps that were seen.
func (d *MyAgent) Losses() (int, []error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.losses, d.gaps
}

// Await waits until a frame, of the log or not, is of the kind, and returns it. Any
// goroutine may call it; the error says why no such frame came.
func (d *MyAgent) Await(ctx context.Context, is func(sdk.Frame) bool) (sdk.Frame, error) {
	frames, unnumbered := 0, 0
	for {
		d.mu.Lock()
		news, failure := d.news, d.failure
		fresh := append(append([]sdk.Frame(nil), d.frames[frames:]...), d.unnumbered[unnumbered:]...)
		frames, unnumbered = len(d.frames), len(d.unnumbered)
		d.mu.Unlock()
		for _, f := range fresh {
			if is(f) {
				return f, nil
			}
		}
		if failure != nil {
			return sdk.Frame{}, failure
		}
		select {
		case <-news:
		case <-ctx.Done():
			return sdk.Frame{}, ctx.Err()
		}
	}
}

// Until waits until the device has seen a frame of the kind.
func (d *MyAgent) Until(what string, is func(sdk.Frame) bool) sdk.Frame {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.MaxWait)
	defer cancel()
	f, err := d.Await(ctx, is)
	require.NoError(d.t, err, "while waiting for %s; got %s", what, Names(d.Frames()))
	return f
}

// UntilSeq waits until the device has seen the log up to seq.
func (d *MyAgent) UntilSeq(seq uint64) {
	d.t.Helper()
	d.Until("the newest event", func(f sdk.Frame) bool { return f.Seq >= seq })
}

// EndOf returns whether a frame, of those that are shown to it in order, ends the run that answers the message.
func EndOf(message string) func(sdk.Frame) bool {
	run := ""
	return func(f sdk.Frame) bool {
		m := f.Meta()
		if f.Event == myagent.UserMessage && m.MessageID == message {
			run = m.RunID
		}
		over := f.Event == myagent.AgentFinalAnswer || f.Event == myagent.AgentInterrupted || f.Event == myagent.AgentError
		return over && f.Seq > 0 && (m.MessageID == message || run != "" && m.RunID == run)
	}
}
