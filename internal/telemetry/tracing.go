package telemetry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	api "go.opentelemetry.io/otel/trace"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// scope names the instrumentation in every span.
const scope = "github.com/waggle-dev/waggle"

// traceparent is the header name that the W3C propagator reads and writes.
const traceparent = "traceparent"

// exporterVariables enable tracing when one of them is set. They are those of the OpenTelemetry specification; Waggle
// does not add its own.
var exporterVariables = []string{
	"OTEL_TRACES_EXPORTER",
	"OTEL_EXPORTER_OTLP_ENDPOINT",
	"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
}

// StartTracing installs the process-wide tracer provider that the OTEL_* environment variables describe. Without
// OTEL_TRACES_EXPORTER or an OTLP endpoint, with OTEL_TRACES_EXPORTER=none or OTEL_SDK_DISABLED=true it installs
// nothing: spans then cost next to nothing and are not recorded, and a caller's trace context still propagates.
//
// The returned function flushes and closes the exporter within its context; it is never nil and may be called more
// than once. An error names the problem of the variable (an unknown exporter, a bad endpoint).
func StartTracing(ctx context.Context, service, version string) (func(context.Context) error, error) {
	nothing := func(context.Context) error { return nil }
	if !enabled() {
		return nothing, nil
	}
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return nothing, fmt.Errorf("start tracing (OTEL_TRACES_EXPORTER=%q): %w", os.Getenv("OTEL_TRACES_EXPORTER"), err)
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(semconv.ServiceName(service), semconv.ServiceVersion(version)),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) && !errors.Is(err, resource.ErrSchemaURLConflict) {
		return nothing, fmt.Errorf("start tracing: resource: %w", errors.Join(err, exporter.Shutdown(ctx)))
	}
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(about))
	otel.SetTracerProvider(provider)
	return provider.Shutdown, nil
}

func enabled() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	for _, name := range exporterVariables {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return false
}

// Tracer returns the tracer of this program. It follows the provider that StartTracing installs, even if it was
// fetched before.
func Tracer() api.Tracer { return otel.Tracer(scope) }

// Start begins a span. The caller ends it with End.
func Start(ctx context.Context, name string, kind api.SpanKind, attrs ...attribute.KeyValue) (context.Context, api.Span) {
	return Tracer().Start(ctx, name, api.WithSpanKind(kind), api.WithAttributes(attrs...))
}

// End ends the span. An error marks it as failed, with the fault code as its error.type ("_OTHER" for errors without
// a code); the text of the error is not recorded, because it may quote a user's text.
func End(span api.Span, err error) {
	if err != nil {
		kind := semconv.ErrorTypeOther
		if f, ok := errors.AsType[*fault.Fault](err); ok {
			kind = semconv.ErrorTypeKey.String(string(f.Code))
		}
		span.SetAttributes(kind)
		span.SetStatus(codes.Error, kind.Value.AsString())
	}
	span.End()
}

// Inject returns the W3C traceparent of ctx's span, or "" if ctx has no span.
func Inject(ctx context.Context) string {
	var c carrier
	propagation.TraceContext{}.Inject(ctx, &c)
	return string(c)
}

// Extract returns ctx with the remote span of the traceparent as the parent of later spans. An empty or malformed
// traceparent returns ctx unchanged, so that it may come straight from a message.
func Extract(ctx context.Context, parent string) context.Context {
	c := carrier(parent)
	return propagation.TraceContext{}.Extract(ctx, &c)
}

// carrier holds the only field of the W3C propagator that Waggle propagates. It omits tracestate, whose size is not
// bounded.
type carrier string

func (c *carrier) Get(key string) string {
	if key != traceparent {
		return ""
	}
	return string(*c)
}

func (c *carrier) Set(key, value string) {
	if key == traceparent {
		*c = carrier(value)
	}
}

func (c *carrier) Keys() []string { return []string{traceparent} }
