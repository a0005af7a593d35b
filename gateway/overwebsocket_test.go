package gateway_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// readsOver opens a stream of events over a WebSocket, as a page does: with its token as a subprotocol.
func (r *rig) readsOver(path, token string, header ...string) (*source, *http.Response, error) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r.t.Cleanup(cancel)
	head := http.Header{}
	for i := 0; i < len(header); i += 2 {
		head.Add(header[i], header[i+1])
	}
	offered := strings.Split(browser(token)[1], ", ")
	conn, res, err := websocket.Dial(ctx, "ws://"+r.addr+path, &websocket.DialOptions{Subprotocols: offered, HTTPHeader: head})
	if err != nil {
		return nil, res, err
	}
	conn.SetReadLimit(-1)
	leave := func() { cancel(); _ = conn.CloseNow() }
	r.t.Cleanup(leave)
	return &source{r: r, res: &http.Response{Body: http.NoBody}, in: bufio.NewReader(websocket.NetConn(ctx, conn, websocket.MessageBinary)), cancel: leave}, res, nil
}

// TestAStreamOverAWebSocket is the same stream: it resumes, ends with the reason, has the limits and the credentials of the
// others, and leaves nothing behind.
func TestAStreamOverAWebSocket(t *testing.T) {
	t.Parallel()
	tenant := unique()
	r := start(t, authenticated(key("ann", tenant, auth.RoleUser), key("eve", unique(), auth.RoleUser)))
	l := subject.Log{Tenant: mustTenant(t, tenant), Kind: id.KindSession, Entity: id.EntityFromExternal(unique())}
	r.happens(l, event.SessionCreatedData{Dialect: "orbit", Principal: "who-ann"})
	r.happens(l, event.SessionClosedData{})

	s, res, err := r.readsOver(streamOf(l)+"?after=1", "ann") //nolint:bodyclose // of a handshake
	require.NoError(t, err)
	require.Equal(t, "waggle", res.Header.Get("Sec-WebSocket-Protocol"))
	e := s.must().of(t)
	require.Equal(t, event.SessionClosed, e.Type)
	topicsOver, _, err := r.readsOver(topics(topicOf(l, 0), "events"), "ann") //nolint:bodyclose // of a handshake
	require.NoError(t, err)
	require.Equal(t, event.SessionCreated, topicsOver.must().parse(t, "log").Type)
	require.Equal(t, event.SessionClosed, topicsOver.must().parse(t, "log").Type)
	r.happens(l, event.SessionDeletedData{})
	_, comment := s.ends()
	require.Equal(t, "waggle SESSION_DELETED", comment)

	for path, status := range map[string]int{
		streamOf(l): http.StatusGone, topics("weather"): http.StatusUnprocessableEntity,
	} {
		_, res, err := r.readsOver(path, "ann") //nolint:bodyclose // of a handshake
		require.Error(t, err)
		require.Equal(t, status, res.StatusCode, path)
	}
	_, res, err = r.readsOver(topics("events"), "nobody") //nolint:bodyclose // of a handshake
	require.Error(t, err)
	require.Equal(t, http.StatusUnauthorized, res.StatusCode)
	_, res, err = r.readsOver(topics("events"), "ann", "Origin", "http://other.example") //nolint:bodyclose // of a handshake
	require.Error(t, err)
	require.Equal(t, http.StatusForbidden, res.StatusCode)
	topicsOver.leave()
	s.leave()
	eventually(t, "no connection is left", func() bool {
		_, body, _ := r.get("/health")
		return strings.Contains(body, `"active_connections":0`)
	})
}
