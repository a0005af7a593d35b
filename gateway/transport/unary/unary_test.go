package unary_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/gateway/transport/transporttest"
	"github.com/waggle-dev/waggle/gateway/transport/unary"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// problem is the document of the suite.
func problem(w http.ResponseWriter, f *fault.Fault) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(fault.Lookup(f.Code).Status)
	_ = json.NewEncoder(w).Encode(map[string]string{"title": string(f.Code)})
}

func TestTransport(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) *transporttest.Link {
		begun := make(chan *unary.Response, 1)
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			out := unary.New(w, unary.Options{QueueBytes: transporttest.Bound})
			begun <- out
			out.Serve(r.Context(), problem)
		}))
		t.Cleanup(srv.Close)
		ctx, cancel := context.WithCancel(context.Background())
		t.Cleanup(cancel)
		answers := make(chan *http.Response, 1)
		go func() {
			defer close(answers)
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, nil)
			if err != nil {
				return
			}
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			if res, err := client.Do(req); err == nil { //nolint:bodyclose // its reader closes it
				answers <- res
			}
		}()
		t.Cleanup(func() {
			cancel()
			for res := range answers {
				_ = res.Body.Close()
			}
		})
		return &transporttest.Link{
			Transport: <-begun, Cut: cancel,
			Read: func() (messages []string, code string) { return read(t, <-answers) },
		}
	})
}

// read reads an answer: the messages of its lines, or the code of its problem document.
func read(t *testing.T, res *http.Response) (messages []string, code string) {
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	if res.StatusCode == http.StatusOK {
		lines := strings.Split(string(b), "\n")
		require.Equal(t, len(lines) > 1, res.Header.Get("Content-Type") == "application/jsonl")
		return lines, ""
	}
	require.Equal(t, "application/problem+json", res.Header.Get("Content-Type"))
	var doc struct{ Title string }
	require.NoError(t, json.Unmarshal(b, &doc))
	require.Equal(t, fault.Lookup(fault.Code(doc.Title)).Status, res.StatusCode)
	return nil, doc.Title
}

// A response that is completed has what was accepted, as JSON lines where these are asked
// for; a gateway that ends says so in place of an answer that looks complete.
func TestCompleteAndLines(t *testing.T) {
	t.Parallel()
	message := transport.Text([]byte(`{"n":1}`))
	for name, c := range map[string]struct {
		lines  bool
		send   int
		ends   func(*unary.Response, context.CancelFunc)
		status int
		media  string
		body   string
	}{
		"nothing":   {true, 0, complete, 200, "application/jsonl", ""},
		"one line":  {true, 1, complete, 200, "application/jsonl", `{"n":1}` + "\n"},
		"two lines": {true, 2, complete, 200, "application/jsonl", `{"n":1}` + "\n" + `{"n":1}` + "\n"},
		"one text":  {false, 1, complete, 200, "application/json", `{"n":1}`},
		"restart":   {true, 1, func(_ *unary.Response, cancel context.CancelFunc) { cancel() }, 503, "application/problem+json", `{"title":"DRAINING"}` + "\n"},
		"fault": {true, 1, func(r *unary.Response, _ context.CancelFunc) {
			r.End(fault.New(fault.SessionDeleted))
			r.Complete()
		}, 410, "application/problem+json", `{"title":"SESSION_DELETED"}` + "\n"},
	} {
		w := httptest.NewRecorder()
		r := unary.New(w, unary.Options{Lines: c.lines})
		for range c.send {
			require.Equal(t, 1, r.Send(message), name)
		}
		ctx, cancel := context.WithCancel(t.Context())
		c.ends(r, cancel)
		r.Serve(ctx, problem)
		cancel()
		require.Zero(t, r.Send(message), name)
		require.Equal(t, c.status, w.Code, name)
		require.Equal(t, c.media, w.Header().Get("Content-Type"), name)
		require.Equal(t, c.body, w.Body.String(), name)
	}
}

func complete(r *unary.Response, _ context.CancelFunc) { r.Complete() }
