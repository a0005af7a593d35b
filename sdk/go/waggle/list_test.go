package waggle_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/sdk/go/waggle"
)

// TestAllPagesOfAList come as one answer, and a server that repeats a page does not keep the client for ever.
func TestAllPagesOfAList(t *testing.T) {
	pages := map[string]string{
		"":     `{"sessions":[{"session_id":"a"},{"session_id":"b"}],"next":"b/+","more":true,"named":["x"]}`,
		"b/+":  `{"sessions":[{"session_id":"c"}],"next":"same","more":true}`,
		"same": `{"sessions":[],"next":"same","more":true}`,
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(pages[r.URL.Query().Get("before")]))
	}))
	defer srv.Close()
	c, err := waggle.Open(t.Context(), srv.URL, waggle.Options{})
	require.NoError(t, err)
	all, err := c.Sessions(t.Context())
	require.NoError(t, err)
	var ids []string
	for _, s := range all {
		ids = append(ids, s.SessionID)
	}
	require.Equal(t, []string{"a", "b", "c"}, ids)
	raw, err := c.List(t.Context(), "sessions", "sessions")
	require.NoError(t, err)
	var members map[string]any
	require.NoError(t, json.Unmarshal(raw, &members))
	require.Len(t, members, 2)
	require.Contains(t, members, "named")
}
