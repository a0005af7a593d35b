package waggle_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
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

// TestSomeOfAList: the filter and the number hold over all pages, and the answer says whether some were left unread.
func TestSomeOfAList(t *testing.T) {
	pages := map[string]string{
		"":  `{"tasks":[{"status":"failed","n":1},{"status":"completed","n":2}],"next":"a","more":true}`,
		"a": `{"tasks":[{"status":"completed","n":3}],"next":"b","more":true}`,
		"b": `{"tasks":[{"status":"failed","n":4},{"status":"failed","n":5}]}`,
	}
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		require.Equal(t, "red", r.URL.Query().Get("colour"))
		_, _ = w.Write([]byte(pages[r.URL.Query().Get("before")]))
	}))
	defer srv.Close()
	c, err := waggle.Open(t.Context(), srv.URL, waggle.Options{})
	require.NoError(t, err)
	failed := func(raw json.RawMessage) bool { return strings.Contains(string(raw), "failed") }
	for _, one := range []struct {
		some  waggle.Some
		want  string
		pages int
	}{
		{waggle.Some{}, `[1,2,3,4,5]`, 3},
		{waggle.Some{Most: 2}, `[1,2]+`, 1},
		{waggle.Some{Most: 3}, `[1,2,3]+`, 2},
		{waggle.Some{Most: 5}, `[1,2,3,4,5]`, 3},
		{waggle.Some{Fits: failed}, `[1,4,5]`, 3},
		{waggle.Some{Fits: failed, Most: 2}, `[1,4]+`, 3},
		{waggle.Some{Fits: failed, Most: 3}, `[1,4,5]`, 3},
		{waggle.Some{Fits: func(json.RawMessage) bool { return false }, Most: 1}, `[]`, 3},
	} {
		asked = 0
		one.some.Query = url.Values{"colour": {"red"}}
		raw, err := c.ListSome(t.Context(), one.some, "tasks", "tasks")
		require.NoError(t, err)
		var got struct {
			Tasks []struct{ N int }
			More  bool
		}
		require.NoError(t, json.Unmarshal(raw, &got))
		numbers := []int{}
		for _, x := range got.Tasks {
			numbers = append(numbers, x.N)
		}
		text, err := json.Marshal(numbers)
		require.NoError(t, err)
		if got.More {
			text = append(text, '+')
		}
		require.Equal(t, one.want, string(text))
		require.Equal(t, one.pages, asked, one.want)
	}
}
