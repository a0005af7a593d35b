package cspreport_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/cspreport"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

const old = "application/csp-report"

// letterbox takes reports at a time of the test.
type letterbox struct {
	t    *testing.T
	to   *cspreport.Reports
	now  time.Time
	log  bytes.Buffer
	seen map[string]int
}

func open(t *testing.T) *letterbox {
	t.Helper()
	d := &letterbox{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), seen: map[string]int{}}
	var err error
	d.to, err = cspreport.New(zerolog.New(&d.log), func() time.Time { return d.now }, func(s string) { d.seen[s]++ },
		func(w http.ResponseWriter, err error) { require.NoError(t, answer.Fault(w, fault.From(err, "ref"))) })
	require.NoError(t, err)
	return d
}

func (d *letterbox) send(from, media, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/api/v1/csp-reports", strings.NewReader(body))
	r.RemoteAddr = from
	r.Header.Set("Content-Type", media)
	w := httptest.NewRecorder()
	d.to.ServeHTTP(w, r)
	return w
}

func (d *letterbox) lines() int { return strings.Count(d.log.String(), "\n") }

func TestReportsOfBothForms(t *testing.T) {
	t.Parallel()
	d := open(t)
	for _, c := range []struct{ media, body string }{
		{old, `{"csp-report":{"effective-directive":"img-src","blocked-uri":"https://evil.example"}}`},
		{old + "; charset=utf-8", `{"csp-report":{"violated-directive":"script-src 'self'"}}`},
		{old, `{"csp-report":{"effective-directive":"evil\u0000<script>"}}`},
		{"application/reports+json", `[{"type":"csp-violation","body":{"effectiveDirective":"img-src"}},{"type":"deprecation","body":{}}]`},
	} {
		w := d.send("192.0.2.1:1", c.media, c.body)
		require.Equal(t, http.StatusNoContent, w.Code, c.body)
		require.Empty(t, w.Body.String())
	}
	require.Equal(t, map[string]int{"img-src": 2, "script-src": 1, cspreport.Other: 1}, d.seen)
	require.NotContains(t, d.log.String(), "evil")
}

func TestWhatIsNoReportCountsNothing(t *testing.T) {
	t.Parallel()
	d := open(t)
	for _, c := range []struct {
		media, body string
		status      int
	}{
		{"text/plain", `{"csp-report":{"effective-directive":"img-src"}}`, http.StatusBadRequest},
		{"", "", http.StatusBadRequest},
		{old, "", http.StatusBadRequest},
		{old, "{}", http.StatusBadRequest},
		{old, `{"csp-report":`, http.StatusBadRequest},
		{"application/reports+json", "{}", http.StatusBadRequest},
		{"application/reports+json", "[" + strings.Repeat(`{},`, 100) + "{}]", http.StatusBadRequest},
		{old, strings.Repeat(" ", 16<<10) + "{}", fault.Lookup(fault.MessageTooBig).Status},
	} {
		w := d.send("192.0.2.1:1", c.media, c.body+"")
		require.Equal(t, c.status, w.Code, c.body)
		if marker := "effective-directive"; strings.Contains(c.body, marker) {
			require.NotContains(t, w.Body.String(), marker)
		}
	}
	require.Empty(t, d.seen)
	require.Empty(t, d.log.String())
}

func TestOneLineAMinute(t *testing.T) {
	t.Parallel()
	d := open(t)
	report := `{"csp-report":{"effective-directive":"img-src"}}`
	for range 10 {
		d.send("192.0.2.1:1", old, report)
	}
	require.Equal(t, 1, d.lines())
	d.now = d.now.Add(59 * time.Second)
	d.send("192.0.2.1:1", old, report)
	require.Equal(t, 1, d.lines())
	d.now = d.now.Add(time.Second)
	d.send("192.0.2.1:1", old, report)
	require.Equal(t, 2, d.lines())
	require.Contains(t, d.log.String(), `"reports":11`, "those that had no line of their own")
}

func TestAnAddressSendsFew(t *testing.T) {
	t.Parallel()
	d := open(t)
	report := `{"csp-report":{"effective-directive":"img-src"}}`
	for range 30 {
		require.Equal(t, http.StatusNoContent, d.send("127.0.0.1:1", old, report).Code)
	}
	require.Equal(t, http.StatusTooManyRequests, d.send("127.0.0.1:2", old, report).Code)
	require.Equal(t, http.StatusNoContent, d.send("192.0.2.1:1", old, report).Code)
	d.now = d.now.Add(time.Second)
	require.Equal(t, http.StatusNoContent, d.send("127.0.0.1:3", old, report).Code)
	require.Equal(t, 32, d.seen["img-src"])
}
