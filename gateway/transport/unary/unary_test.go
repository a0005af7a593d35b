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
