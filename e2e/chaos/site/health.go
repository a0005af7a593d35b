package site

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/e2e/harness/process"
)

// Healthy waits until every process says that it is well. One that could not start, as
// when the bus was away, is started again, as orchestrators do; one that crashed is not.
func (s *Site) Healthy(ctx context.Context) error {
	for _, m := range append(append([]*Member(nil), s.Servers...), s.All()...) {
		if err := m.Healthy(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Healthy is Healthy of one process.
func (m *Member) Healthy(ctx context.Context) error {
	url := "http://" + m.probe() + "/readyz"
	if m.Role == roleNATS {
		url = "http://" + m.probe() + "/healthz"
	}
	for {
		text, err := Request(ctx, http.MethodGet, url, "", "")
		if err == nil {
			return nil
		}
		if e := m.revive(); e != nil {
			return e
		}
		if e := process.Rest(ctx, process.Poll); e != nil {
			return fmt.Errorf("%s: %w: %w: %s", m.Name, e, err, text)
		}
	}
}

// revive starts a process that has ended by itself, unless it crashed.
func (m *Member) revive() error {
	select {
	case <-m.p.Ended():
	default:
		return nil
	}
	out := m.p.Output()
	for _, sign := range []string{"panic:", "fatal error:", "DATA RACE"} {
		if strings.Contains(out, sign) {
			return fmt.Errorf("%s crashed: %s", m.Name, out)
		}
	}
	m.s.T.Logf("%s ended by itself and is started again; it said last: %s", m.Name, out[max(0, len(out)-lastWords):])
	m.Start()
	return nil
}

// lastWords are shown of a process that ended by itself.
const lastWords = 600

// Metric returns the sum of a metric's values.
func (m *Member) Metric(ctx context.Context, name string) (sum float64, err error) {
	text, err := Request(ctx, http.MethodGet, "http://"+m.Telemetry+"/metrics", KeyOf(Tenants[0]), "")
	if err != nil {
		return 0, err
	}
	for _, found := range regexp.MustCompile(`(?m)^`+name+`(?:\{[^}]*\})? (\S+)$`).FindAllStringSubmatch(text, -1) {
		v, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			return 0, fmt.Errorf("%s of %s: %w", name, m.Name, err)
		}
		sum += v
	}
	return sum, nil
}

// Request makes a request and returns the body of a successful answer.
func Request(ctx context.Context, method, url, key, body string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("HTTP %d", resp.StatusCode)
	}
	return string(raw), err
}
