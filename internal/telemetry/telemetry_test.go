package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestLoggerWritesTheTraceOfItsContext(t *testing.T) {
	var out bytes.Buffer
	log, err := telemetry.NewLogger(&out, "info", telemetry.FormatJSON)
	require.NoError(t, err)
	log.Info().Ctx(telemetry.Extract(t.Context(), parent)).Msg("with")
	log.Info().Ctx(t.Context()).Msg("without a span")
	log.Info().Msg("without a context")
	log.Debug().Msg("below the level")

	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	require.Len(t, lines, 3)
	var with map[string]any
	require.NoError(t, json.Unmarshal(lines[0], &with))
	require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", with["trace_id"])
	require.Equal(t, "00f067aa0ba902b7", with["span_id"])
	require.Contains(t, with, "time")
	require.NotContains(t, string(lines[1]), "trace_id")
	require.NotContains(t, string(lines[2]), "trace_id")
}

// A logged text cannot forge a line or control the operator's terminal.
func TestALogLineStaysALine(t *testing.T) {
	for _, format := range []string{telemetry.FormatJSON, telemetry.FormatConsole} {
		var out bytes.Buffer
		log, err := telemetry.NewLogger(&out, "debug", format)
		require.NoError(t, err)
		log.Info().Str("field", "a\r\nb\x1b[31mc").Msg("d\r\ne\x1b]0;title\x07f")
		require.Equal(t, 1, strings.Count(out.String(), "\n"), "%s: %q", format, out.String())
		require.NotContains(t, out.String(), "\r", format)
		require.NotContains(t, out.String(), "\x1b", format)
	}
}

func TestLoggerNamesABadOption(t *testing.T) {
	_, err := telemetry.NewLogger(io.Discard, "loud", telemetry.FormatJSON)
	require.ErrorContains(t, err, `"loud"`)
	_, err = telemetry.NewLogger(io.Discard, "", telemetry.FormatJSON)
	require.Error(t, err)
	_, err = telemetry.NewLogger(io.Discard, "info", "xml")
	require.ErrorContains(t, err, `"xml"`)
	log, err := telemetry.NewLogger(io.Discard, "warn", telemetry.FormatConsole)
	require.NoError(t, err)
	require.Equal(t, zerolog.WarnLevel, log.GetLevel())
}

func TestATraceparentTravels(t *testing.T) {
	require.Equal(t, parent, telemetry.Inject(telemetry.Extract(t.Context(), parent)))
	require.Empty(t, telemetry.Inject(t.Context()))
	for _, bad := range []string{"", "x", parent[:54], strings.ToUpper(parent), "ff" + parent[2:], "00-" + strings.Repeat("0", 32) + parent[35:]} {
		require.Empty(t, telemetry.Inject(telemetry.Extract(t.Context(), bad)), bad)
	}
	// Without an exporter too, so that a caller's trace continues.
	ctx, span := telemetry.Start(telemetry.Extract(t.Context(), parent), "x", trace.SpanKindConsumer)
	require.Equal(t, parent, telemetry.Inject(ctx))
	telemetry.End(span, nil)
}

func TestExtractIsSafeForAnyString(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.StringMatching(`[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}.{0,3}`)).Draw(t, "s")
		if got := telemetry.Inject(telemetry.Extract(context.Background(), s)); got != "" {
			require.Equal(t, s[2:52], got[2:52])
			require.Len(t, got, 55)
		}
	})
}

func TestEndRecordsTheCodeAndNotTheText(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	install(t, sdk.NewTracerProvider(sdk.WithSpanProcessor(spans)))
	for _, c := range []struct {
		err  error
		code codes.Code
		kind string
	}{
		{nil, codes.Unset, ""},
		{fmt.Errorf("chat: %w", fault.Newf(fault.ModelBusy, "secret")), codes.Error, "MODEL_BUSY"},
		{errors.New("secret"), codes.Error, "_OTHER"},
	} {
		_, span := telemetry.Start(t.Context(), "chat", trace.SpanKindClient, telemetry.OperationChat)
		telemetry.End(span, c.err)
		ended := spans.Ended()
		last := ended[len(ended)-1]
		require.Equal(t, c.code, last.Status().Code)
		require.NotContains(t, fmt.Sprint(last.Attributes(), last.Status(), last.Events()), "secret")
		kind := ""
		for _, a := range last.Attributes() {
			if a.Key == telemetry.KeyErrorType {
				kind = a.Value.AsString()
			}
		}
		require.Equal(t, c.kind, kind)
		require.Equal(t, trace.SpanKindClient, last.SpanKind())
	}
}

func install(t *testing.T, p trace.TracerProvider) {
	otel.SetTracerProvider(p)
	t.Cleanup(func() { otel.SetTracerProvider(noop.NewTracerProvider()) })
}

var variables = []string{
	"OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_SDK_DISABLED",
}

func TestTracesAreOffUnlessAskedFor(t *testing.T) {
	for _, env := range []map[string]string{
		{},
		{"OTEL_TRACES_EXPORTER": "none"},
		{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
	} {
		for _, name := range variables {
			t.Setenv(name, env[name])
		}
		shutdown, err := telemetry.StartTracing(t.Context(), "waggle", "test")
		require.NoError(t, err)
		_, span := telemetry.Start(t.Context(), "x", trace.SpanKindInternal)
		require.False(t, span.IsRecording(), "%v", env)
		telemetry.End(span, nil)
		require.NoError(t, shutdown(t.Context()))
		require.NoError(t, shutdown(t.Context()))
	}
}

func TestSpansReachTheCollector(t *testing.T) {
	received := make(chan []byte, 1)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && r.URL.Path == "/v1/traces" {
			received <- body
		}
	}))
	defer collector.Close()
	for _, name := range variables {
		t.Setenv(name, "")
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=laboratory")

	shutdown, err := telemetry.StartTracing(t.Context(), "waggle-gateway", "v1.2.3")
	require.NoError(t, err)
	t.Cleanup(func() { otel.SetTracerProvider(noop.NewTracerProvider()) })
	_, span := telemetry.Start(t.Context(), "accept", trace.SpanKindServer)
	telemetry.End(span, nil)
	require.NoError(t, shutdown(t.Context()))
	require.Len(t, received, 1, "shutdown flushes")
	body := string(<-received)
	for _, want := range []string{"waggle-gateway", "v1.2.3", "laboratory", "accept"} {
		require.Contains(t, body, want)
	}
}

func TestABadExporterIsAnError(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "telepathy")
	shutdown, err := telemetry.StartTracing(t.Context(), "waggle", "test")
	require.ErrorContains(t, err, "telepathy")
	require.NoError(t, shutdown(t.Context()))
}

// report collects the complaints of Lint.
type report struct{ lines []string }

func (*report) Helper() {}

func (r *report) Errorf(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func TestLint(t *testing.T) {
	reg := telemetry.NewRegistry()
	var empty report
	telemetry.Lint(&empty, reg)
	require.Len(t, empty.lines, 1, "a registry without metrics of ours")

	good := prometheus.NewCounter(prometheus.CounterOpts{Name: "waggle_frames_total", Help: "Frames."})
	reg.MustRegister(good)
	telemetry.Lint(t, reg)

	for name, c := range map[string]prometheus.Collector{
		"waggle_frames":    prometheus.NewCounter(prometheus.CounterOpts{Name: "waggle_frames", Help: "No _total."}),
		"frames_total":     prometheus.NewCounter(prometheus.CounterOpts{Name: "frames_total", Help: "Not ours."}),
		"waggle_wait_ms":   prometheus.NewGauge(prometheus.GaugeOpts{Name: "waggle_wait_milliseconds", Help: "Not the base unit."}),
		"waggle_helpless":  prometheus.NewGauge(prometheus.GaugeOpts{Name: "waggle_helpless"}),
		"waggle_camelCase": prometheus.NewGauge(prometheus.GaugeOpts{Name: "waggle_camelCase", Help: "Camel."}),
	} {
		bad := prometheus.NewRegistry()
		bad.MustRegister(c)
		var r report
		telemetry.Lint(&r, bad)
		require.NotEmpty(t, r.lines, name)
	}
}

func TestTheRegistryKnowsRuntimeAndProcess(t *testing.T) {
	families, err := telemetry.NewRegistry().Gather()
	require.NoError(t, err)
	names := map[string]bool{}
	for _, f := range families {
		names[f.GetName()] = true
	}
	require.True(t, names["go_goroutines"])
	require.True(t, names["process_open_fds"])
}

// TestRegister: the error for metrics that cannot be registered names their owner; without a registry Register
// succeeds.
func TestRegister(t *testing.T) {
	count := prometheus.NewCounter(prometheus.CounterOpts{Name: "waggle_test_total", Help: "For the test."})
	require.NoError(t, telemetry.Register(nil, "the test", count, count))
	r := prometheus.NewRegistry()
	require.NoError(t, telemetry.Register(r, "the test", count))
	require.ErrorContains(t, telemetry.Register(r, "the test", count), "register metrics of the test: ")
}
