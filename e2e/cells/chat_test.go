package cells_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/orbit"
)

// chat is a person who asks one question after the other, until told to stop.
type chat struct {
	client *sdk.Client
	cancel context.CancelFunc
	done   chan error

	mu       sync.Mutex
	answers  int
	lost     int // connections
	wrong    []string
	finished chan struct{} // closed and replaced at each answer and each error
}

// talk opens a chat through the gateway of a cell.
func (s *site) talk(cell, key string) *chat {
	s.t.Helper()
	c := &chat{client: sdk.New(sdk.Options{URL: "ws://" + s.cells[cell].addr + "/ws", Token: key}), done: make(chan error, 1), finished: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	s.t.Cleanup(cancel)
	go func() { c.done <- c.client.Run(ctx, c) }()
	return c
}

// Frame implements the handler of the client.
func (c *chat) Frame(f sdk.Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch f.Type {
	case "agent_response":
		c.answers++
	case "error":
		c.wrong = append(c.wrong, string(f.Raw))
	default:
		return
	}
	close(c.finished)
	c.finished = make(chan struct{})
}

// Lost implements the handler of the client.
func (c *chat) Lost(error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost++
}

// count returns the number of answers, the channel that the next one closes, and the errors so far.
func (c *chat) count() (int, <-chan struct{}, []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answers, c.finished, c.wrong
}

// ask asks a question and waits for its answer.
func (c *chat) ask(text string) error {
	before, _, _ := c.count()
	if err := c.client.Send(text); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), process.MaxWait)
	defer cancel()
	for {
		n, next, wrong := c.count()
		switch {
		case len(wrong) > 0:
			return fmt.Errorf("%q was refused: %v", text, wrong)
		case n > before:
			return nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return fmt.Errorf("no answer to %q at %d: %w", text, c.client.Seq(), ctx.Err())
		case err := <-c.done:
			return fmt.Errorf("the client has ended: %w", err)
		}
	}
}

// viewer shows a session over a socket that it opens again after the last frame whenever it ends, and keeps every frame.
type viewer struct {
	link *client.Reconnecting

	mu     sync.Mutex
	frames []client.OrbitFrame
	seq    uint64
	wrong  []error
}

// watch opens a viewer of a session through the gateway of a cell. It ends with the test.
func (s *site) watch(cell, key, session string) *viewer {
	s.t.Helper()
	v := &viewer{}
	v.link = client.NewReconnecting(client.ReconnectOptions{
		Addrs: []string{s.cells[cell].addr}, Key: key, Take: v.take,
		Path: func() string {
			v.mu.Lock()
			defer v.mu.Unlock()
			return "/ws?session=" + session + "&after=" + strconv.FormatUint(v.seq, 10)
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = v.link.Run(ctx)
	}()
	s.t.Cleanup(func() {
		cancel()
		<-ended
	})
	return v
}

func (v *viewer) take(raw string) {
	f := client.OrbitFrame{Raw: raw}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := json.Unmarshal([]byte(raw), &f); err != nil {
		v.wrong = append(v.wrong, err)
		return
	}
	if f.Seq == 0 { // about no event
		return
	}
	if f.Seq <= v.seq {
		v.wrong = append(v.wrong, fmt.Errorf("seq %d after %d: %s", f.Seq, v.seq, raw))
	}
	v.seq = max(v.seq, f.Seq)
	v.frames = append(v.frames, f)
}

// has returns the frames so far, and everything that was wrong with their order.
func (v *viewer) has() ([]client.OrbitFrame, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]client.OrbitFrame(nil), v.frames...), errors.Join(v.wrong...)
}

// replay returns all frames of a session, as a viewer gets them that nothing disturbs, up to that many answers.
func (s *site) replay(cell, key, session string, answers int) []client.OrbitFrame {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.MaxWait)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws://"+s.cells[cell].addr+"/ws?session="+session+"&after=0", dialOptions(key)) //nolint:bodyclose // closed by the library
	require.NoError(s.t, err)
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(1 << 20)
	var out []client.OrbitFrame
	for n := 0; n < answers; {
		_, raw, err := conn.Read(ctx)
		require.NoError(s.t, err)
		f := client.OrbitFrame{Raw: string(raw)}
		require.NoError(s.t, json.Unmarshal(raw, &f))
		if f.Seq > 0 {
			out = append(out, f)
		}
		if f.Type == "agent_response" {
			n++
		}
	}
	return out
}

// exact waits until a viewer has the frames, and requires that it has each of them once, in order, byte for byte.
func (v *viewer) exact(t testing.TB, want []client.OrbitFrame) {
	t.Helper()
	last := want[len(want)-1].Seq
	process.Eventually(t, "the last frame", func() bool {
		got, _ := v.has()
		return len(got) > 0 && got[len(got)-1].Seq >= last
	})
	got, err := v.has()
	require.NoError(t, err)
	for i, f := range want {
		require.Less(t, i, len(got), "frames are missing behind %d of %d", len(got), len(want))
		require.Equal(t, f.Raw, got[i].Raw, "frame %d", i)
	}
}
