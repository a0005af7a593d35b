package telemetry

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel/trace"
)

// The formats of NewLogger.
const (
	FormatJSON    = "json"
	FormatConsole = "console"
)

// NewLogger returns a logger that writes to w in one of the formats "json" (one object a line) and "console" (for
// people). level is a zerolog level: trace, debug, info, warn, error. Lines written with Ctx(ctx) carry the trace_id
// and span_id of ctx. Writes are not synchronised: w must be safe for concurrent use (os.Stderr is).
func NewLogger(w io.Writer, level, format string) (zerolog.Logger, error) {
	l, err := zerolog.ParseLevel(level)
	if err != nil || level == "" {
		return zerolog.Logger{}, fmt.Errorf("log level %q is not one of trace, debug, info, warn, error", level)
	}
	switch format {
	case FormatJSON:
	case FormatConsole:
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly, NoColor: !isTerminal(w), FormatPrepare: quoteMessage}
	default:
		return zerolog.Logger{}, fmt.Errorf("log format %q is neither %s nor %s", format, FormatJSON, FormatConsole)
	}
	return zerolog.New(w).Level(l).Hook(traceHook{}).With().Timestamp().Logger(), nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// quoteMessage escapes characters that could end the line or control the terminal. The console writer escapes fields,
// but not the message.
func quoteMessage(line map[string]any) error {
	s, ok := line[zerolog.MessageFieldName].(string)
	if ok && strings.ContainsFunc(s, unicode.IsControl) {
		line[zerolog.MessageFieldName] = strconv.Quote(s)
	}
	return nil
}

// traceHook adds the ids of the span in a line's context.
type traceHook struct{}

func (traceHook) Run(e *zerolog.Event, _ zerolog.Level, _ string) {
	span := trace.SpanContextFromContext(e.GetCtx())
	if span.IsValid() {
		e.Str("trace_id", span.TraceID().String()).Str("span_id", span.SpanID().String())
	}
}
