package gateway_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	auditlog "github.com/waggle-dev/waggle/internal/audit"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
)

// emptyPages are pages of a browser that has nothing to show.
type emptyPages struct{ http.Handler }

func (emptyPages) Serves(*http.Request) bool { return false }

func (emptyPages) Lost(http.ResponseWriter, *http.Request) bool { return false }

// lostPages answer browsers that are lost.
type lostPages struct{ emptyPages }

func (lostPages) Lost(w http.ResponseWriter, _ *http.Request) bool {
	w.WriteHeader(http.StatusTeapot)
	return true
}

// An address that nothing answers is for the pages, unless it is one of the API.
func TestAnAddressThatNothingAnswers(t *testing.T) {
	t.Parallel()
	r := start(t, func(_ *gateway.Config, d *gateway.Deps) { d.Pages = lostPages{} })
	for path, want := range map[string]int{"/nonsense": http.StatusTeapot, "/api/nonsense": http.StatusNotFound, "/api/v1/sessions": http.StatusOK} {
		status, _, _ := r.get(path)
		require.Equal(t, want, status, path)
	}
}

// TestReportsOfPages are counted without credentials and whatever Origin the browser names, and leave no audit record. Strangers get
// nothing of what they sent.
func TestReportsOfPages(t *testing.T) {
	t.Parallel()
	i := bustest.Start(t, bus.DefaultTopology())
	c := bustest.Dial(t, i.URL)
	w, err := auditlog.New(c, auditlog.Options{CloseMaxWait: time.Hour})
	require.NoError(t, err)
	t.Cleanup(w.Close)
	r := startOn(t, c, authenticated(key("alice", "red", auth.RoleUser)), func(_ *gateway.Config, d *gateway.Deps) {
		d.Audit, d.Pages = w, emptyPages{}
	})
	const path, report = "/api/v1/csp-reports", `{"csp-report":{"effective-directive":"img-src","blocked-uri":"https://evil.example"}}`
	send := func(body string, header ...string) (int, string) {
		status, text, _ := r.send(http.MethodPost, path, strings.NewReader(body), append(header, "Content-Type", "application/csp-report")...)
		return status, text
	}
	for _, header := range [][]string{nil, {"Origin", "null"}, {"Origin", "http://evil.net"}, bearer("a-wrong-secret")} {
		status, text := send(report, header...)
		require.Equal(t, http.StatusNoContent, status)
		require.Empty(t, text)
	}
	require.InDelta(t, 4, r.metric("waggle_gateway_page_reports_total", "directive", "img-src"), 0)
	status, text := send("evil.example")
	require.Equal(t, http.StatusBadRequest, status)
	require.NotContains(t, text, "evil")
	for status = 0; status != http.StatusTooManyRequests; {
		status, _ = send(report)
	}
	status, _, _ = r.get(path)
	require.Equal(t, http.StatusMethodNotAllowed, status)
	require.InDelta(t, 0, r.metric("waggle_gateway_page_reports_total", "directive", "other"), 0)

	status, _, _ = r.get("/api/v1/me", bearer("a-wrong-secret")...) // the record of it comes after those of the reports
	require.Equal(t, http.StatusUnauthorized, status)
	reader := bustest.Dial(t, i.URL)
	eventually(t, "the record is there", func() bool {
		there := false
		require.NoError(t, auditlog.Read(t.Context(), reader, auditlog.Query{}, func(rec audit.Record) error {
			require.NotContains(t, rec.Entity, "csp-reports")
			there = there || rec.Action == audit.AuthFailed.String()
			return nil
		}))
		return there
	})
}

// TestWithoutPagesNoReports are taken.
func TestWithoutPagesNoReports(t *testing.T) {
	r := start(t)
	status, _ := r.post("/api/v1/csp-reports", "{}")
	require.Equal(t, http.StatusNotFound, status)
}
