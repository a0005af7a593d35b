package gateway_test

import (
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// The gates: figures of the whole path from log to socket that a busy machine does
// not move.

// ordinary is a text that makes a frame of about 300 bytes.
var ordinary = strings.Repeat("o", 120)

// many appends n ordinary events at once.
func (r *rig) many(l subject.Log, n int) {
	r.t.Helper()
	texts := make([]string, n)
	for i := range texts {
		texts[i] = ordinary
	}
	r.answers(l, texts...)
}

// drain reads and forgets what comes, until the connection ends.
func (c *client) drain() {
	buf := make([]byte, 64<<10)
	for {
		if _, err := c.br.Read(buf); err != nil {
			return
		}
	}
}

// sinks opens viewers of a log that read everything, and returns when they are live.
func (r *rig) sinks(l subject.Log, n int) {
	r.t.Helper()
	for range n {
		c := r.dial("session=" + l.Entity.String())
		c.ready()
		require.NoError(r.t, c.SetDeadline(time.Time{}))
		go c.drain()
	}
}
