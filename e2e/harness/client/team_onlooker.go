package client

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/proof"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

// RunViewer watches a run that others have started in the session protocol, on one socket.
// Each frame has to fit its schema. It is safe for concurrent use.
type RunViewer struct {
	t    testing.TB
	run  string
	conn *websocket.Conn

	mu     sync.Mutex
	frames []sdk.Frame
	err    error
	news   chan struct{}
}

// ViewRun opens the socket of a run, such as team/<id>, and reads until the test ends.
func ViewRun(t testing.TB, addr, kind, run, key string) *RunViewer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.Patience)
	defer cancel()
	var o websocket.DialOptions
	if key != "" {
		o.HTTPHeader = http.Header{"Authorization": {"Bearer " + key}}
	}
	conn, _, err := websocket.Dial(ctx, "ws://"+addr+"/ws/session?deltas=all&watch="+kind+"/"+run, &o) //nolint:bodyclose // closed by the library
	require.NoError(t, err)
	conn.SetReadLimit(8 << 20)
	l := &RunViewer{t: t, run: run, conn: conn, news: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for l.take(readFrame(context.Background(), conn)) {
		}
	}()
	t.Cleanup(func() {
		_ = conn.CloseNow()
		<-ended
	})
	return l
}

func (l *RunViewer) take(f sdk.Frame, err error) bool {
	if err == nil {
		proof.MyAgentReceived(l.t, f)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err = err; err == nil {
		l.frames = append(l.frames, f)
	}
	close(l.news)
	l.news = make(chan struct{})
	return err == nil
}

// Say sends an event about the run with the given members.
func (l *RunViewer) Say(event string, members map[string]any) {
	l.t.Helper()
	frame := map[string]any{"event": event, "session_id": l.run}
	for k, v := range members {
		frame[k] = v
	}
	b, err := json.Marshal(frame)
	require.NoError(l.t, err)
	proof.MyAgentSent(l.t, event, b)
	ctx, cancel := context.WithTimeout(context.Background(), process.Patience)
	defer cancel()
	require.NoError(l.t, l.conn.Write(ctx, websocket.MessageText, b))
}

// Until waits for a frame of the kind.
func (l *RunViewer) Until(what string, is func(sdk.Frame) bool) sdk.Frame {
	l.t.Helper()
	late := time.After(process.Patience)
	for from := 0; ; {
		l.mu.Lock()
		frames, err, news := l.frames, l.err, l.news
		l.mu.Unlock()
		for ; from < len(frames); from++ {
			if is(frames[from]) {
				return frames[from]
			}
		}
		require.NoError(l.t, err, "while waiting for %s; got %s", what, Names(frames))
		select {
		case <-news:
		case <-late:
			require.FailNow(l.t, "it never came: "+what, "%s", Names(frames))
		}
	}
}
