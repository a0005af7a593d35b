package gateway_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/waggle-dev/waggle/gateway"
)

// Every message is the beginning of a trace, which continues with its command.
func TestTraces(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(sdk.NewTracerProvider(sdk.WithSpanProcessor(spans)))
	t.Cleanup(func() { otel.SetTracerProvider(before) })

	r := start(t)
	c, session := fresh(r)
	c.write(message("traced"))
	parent := r.nextCommand(session).TraceParent
	c.write(text("{"))
	c.refused("BAD_JSON")

	var good, bad sdk.ReadOnlySpan
	eventually(t, "two spans have ended", func() bool {
		for _, s := range spans.Ended() {
			switch {
			case s.Name() != "receive orbit+page":
			case s.Status().Code == codes.Error:
				bad = s
			default:
				good = s
			}
		}
		return good != nil && bad != nil
	})
	require.Equal(t, trace.SpanKindServer, good.SpanKind())
	require.Contains(t, parent, good.SpanContext().TraceID().String())
	require.NotEqual(t, good.SpanContext().TraceID(), bad.SpanContext().TraceID())
}

// logs is a writer that many may write to.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Neither tokens nor what people write is logged, at any level.
func TestLogsKeepSecrets(t *testing.T) {
	const token, said = "canary-token", "canary-text"
	var out logs
	r := start(t, authenticated(key(token, "red")), func(_ *gateway.Config, d *gateway.Deps) {
		d.Logger = zerolog.New(&out).Level(zerolog.TraceLevel)
	})
	for _, header := range [][]string{bearer(token), {"X-API-Key", token}, browser(token)} {
		c := r.dial("", header...)
		session := c.ready()
		c.write(message(said))
		r.nextCommand(session)
		r.nextCommand(session)
		c.write(text(`{"type":"` + said + `"}`))
		c.refused("UNKNOWN_MESSAGE_TYPE")
		c.write(text(`{"` + said))
		c.refused("BAD_JSON")
		c.leave()
	}
	c := r.dial("")
	c.write(text(`{"type":"auth","token":"` + token + `x"}`))
	c.refused("UNAUTHENTICATED")
	c.closes(4401)
	_, status, _ := r.handshake("", bearer(token+"y")...)
	require.Equal(t, 401, status)
	r.srv.Stop()
	require.NotEmpty(t, out.String())
	for _, secret := range []string{token, said, strings.TrimPrefix(browser(token)[1], "waggle, waggle.token.")} {
		require.NotContains(t, out.String(), secret)
	}
}
