package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// source is a client of server-sent events, which does not reconnect by itself.
type source struct {
	r        *rig
	res      *http.Response
	in       *bufio.Reader
	cancel   context.CancelFunc
	comments []string
	retry    string
}

// happening is one server-sent event.
type happening struct{ id, event, data string }

// reads opens a stream of events.
func (r *rig) reads(path string, header ...string) *source {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.addr+path, nil)
	require.NoError(r.t, err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * maxWait}).Do(req) //nolint:bodyclose // leave closes it
	require.NoError(r.t, err)
	s := &source{r: r, res: res, in: bufio.NewReaderSize(res.Body, 64<<10), cancel: cancel}
	r.t.Cleanup(s.leave)
	require.Equal(r.t, http.StatusOK, res.StatusCode, path)
	require.Equal(r.t, "text/event-stream; charset=utf-8", res.Header.Get("Content-Type"))
	r.keepsContract(res, "")
	return s
}

// leave goes away.
func (s *source) leave() {
	s.cancel()
	_ = s.res.Body.Close()
}

// next returns the next message, or an error at the end of the stream.
func (s *source) next() (m happening, err error) {
	some := false
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			return m, err
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "id":
			m.id = value
		case "event":
			m.event = value
		case "data":
			m.data, some = m.data+value, true
		case "retry":
			s.retry = value
		case "":
			if strings.TrimSpace(value) != "" {
				s.comments = append(s.comments, value)
			} else if some {
				return m, nil
			}
		}
	}
}

// must returns the next message.
func (s *source) must() happening {
	s.r.t.Helper()
	m, err := s.next()
	require.NoError(s.r.t, err)
	return m
}

// of returns the event that a message has.
func (m happening) of(t require.TestingT) (e event.Event) {
	require.NoError(t, json.Unmarshal([]byte(m.data), &e), m.data)
	require.Equal(t, m.event, string(e.Type))
	return e
}

// ends reads up to the end of the stream and returns the last message and the last comment.
func (s *source) ends() (last happening, comment string) {
	s.r.t.Helper()
	for {
		m, err := s.next()
		if err != nil {
			require.NotEmpty(s.r.t, s.comments, "the stream ends without a word: %v", err)
			return last, s.comments[len(s.comments)-1]
		}
		last = m
	}
}

// streamOf is the address of the stream of a session.
func streamOf(l subject.Log) string { return "/api/v1/sessions/" + l.Entity.String() + "/stream" }
