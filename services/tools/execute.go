package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools/fsserver"
)

// errCancelled is the cause of a context whose call was cancelled by its caller.
var errCancelled = errors.New("the call was cancelled")

// execute brings a fresh run to its outcome.
func (s *Service) execute(r *run, call Call) {
	began := time.Now()
	label := noServer
	var res Result
	rt, err := s.route(call)
	if err == nil {
		label = rt.label()
		res, err = perform(r.ctx, rt, call, func(n Notification) { s.metrics.missed.Add(float64(r.notes.tell(n))) })
	}
	var f *fault.Fault
	if err != nil {
		f = fault.From(err, "")
	}
	s.metrics.called(label, f, res, time.Since(began))
	s.calls.end(r, res, f, keeps(rt, call, f))
}

// keeps reports whether a repeat of the call gets this outcome. It does not if
// nothing ran, or if the outcome is not known and the tool may be repeated.
func keeps(rt route, call Call, f *fault.Fault) bool {
	if f == nil {
		return true
	}
	switch f.Code {
	case fault.ToolFailed, fault.BadOutput:
		return true
	case fault.ToolLost, fault.ServiceLost, fault.ToolTimeout, fault.ToolCancelled:
		return rt == nil || !rt.repeatable(call)
	}
	return false
}

// perform runs a call within its time.
func perform(ctx context.Context, rt route, call Call, told func(Notification)) (_ Result, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, rt.limit(call.Timeout), errTimeout)
	defer cancel()
	ctx, span := telemetry.Start(ctx, "tools/call "+call.Tool, trace.SpanKindClient,
		semconv.GenAIToolName(call.Tool), semconv.GenAIToolCallID(call.ID))
	defer func() { telemetry.End(span, err) }()
	return rt.run(ctx, call, told)
}

// maxAttempts bounds the attempts at one call: two that reach the tool, and as many
// that find a connection which has just ended.
const maxAttempts = 4

// try runs a call, and again if the attempt reached nobody, or once more if it may
// have reached a tool that may be repeated.
func (s *Service) try(ctx context.Context, srv *server, call Call) (Result, error) {
	var res Result
	var again bool
	var err error
	for n, lost := 0, 0; n < maxAttempts && lost < 2; n++ {
		res, again, err = s.attempt(ctx, srv, call)
		if !again || ctx.Err() != nil {
			break
		}
		if errors.Is(err, fault.New(fault.ToolLost)) {
			lost++
		}
		s.log.Info().Err(err).Str("server", srv.cfg.Name).Str("tool", call.Tool).Msg("a tool call did not come through")
	}
	return res, err
}

// attempt runs a call on the current connection. again says that it may be
// repeated without risk.
func (s *Service) attempt(ctx context.Context, srv *server, call Call) (_ Result, again bool, _ error) {
	if srv.find(call.Tool) == nil && srv.connected() {
		return Result{}, false, fault.Newf(fault.ToolNotFound, "There is no tool %s.", shorten(call.Tool, maxName))
	}
	sess, tool, err := srv.acquire(ctx, call.Tool)
	if err != nil && !errors.Is(err, errTimeout) {
		return Result{}, false, interrupted(err, false)
	}
	if sess == nil {
		return Result{}, false, fault.Newf(fault.ToolsDown, "The tool server %s is not connected. Nothing was run.", srv.cfg.Name)
	}
	defer sess.release()
	if tool == nil {
		return Result{}, false, fault.Newf(fault.ToolNotFound, "There is no tool %s any more.", call.Tool)
	}
	args, err := checkArguments(tool.schema, call.Arguments)
	if err != nil {
		return Result{}, false, err
	}
	a := newAttempt()
	got, err := sess.call(ctx, a, &mcp.CallToolParams{Name: tool.Own, Arguments: args, Meta: s.meta(ctx, srv, call.Tenant)})
	if err == nil {
		res, err := answered(got, tool, call.Raw, srv.cfg.OutputCap)
		return res, false, err
	}
	return s.failed(ctx, srv, sess, tool, call, a, err)
}

// failed turns the error of an attempt into a fault.
func (s *Service) failed(ctx context.Context, srv *server, sess *session, tool *known, call Call, a *attempt, err error) (Result, bool, error) {
	if ctx.Err() != nil {
		return Result{}, false, interrupted(context.Cause(ctx), a.ran())
	}
	je := answerOf(err)
	if !a.ran() || je != nil && je.Code == mcp.CodeUnsupportedProtocolVersion {
		sess.retire() // The second: another server has taken its place.
		return Result{}, true, fault.Newf(fault.ToolsDown, "The tool server %s cannot be reached. Nothing was run.", srv.cfg.Name).Wrap(err)
	}
	if je != nil {
		srv.changed() // The tool may be gone, or the session: find out.
		if je.Code == jsonrpc.CodeInvalidParams {
			return Result{}, false, fault.Newf(fault.ToolBadInput, "The tool refused the arguments: %s", shorten(je.Message, maxMessage)).Wrap(err)
		}
		return Result{}, false, fault.Newf(fault.ToolFailed, "The tool failed: %s", shorten(je.Message, maxMessage)).Wrap(err)
	}
	if errors.Is(err, mcp.ErrConnectionClosed) {
		sess.retire()
	}
	return Result{}, tool.Repeatable(call.Arguments), fault.New(fault.ToolLost).Wrap(err)
}

// answerOf returns the JSON-RPC error with which the server answered, or nil if the
// error arose on this side: the SDK marks those with the codes of its own.
func answerOf(err error) *jsonrpc.Error {
	const clientClosing, serverClosing, notSent = -32003, -32004, -32005
	je, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || errors.Is(err, mcp.ErrConnectionClosed) {
		return nil
	}
	switch je.Code {
	case clientClosing, serverClosing, notSent:
		return nil
	}
	return je
}

// maxMessage bounds what is passed on of a server's error message.
const maxMessage = 4 << 10

// interrupted turns the cause of a context into a fault.
func interrupted(cause error, ran bool) error {
	switch {
	case errors.Is(cause, errTimeout) && !ran:
		return fault.Newf(fault.ToolsDown, "The tool server could not be reached in time. Nothing was run.").Wrap(cause)
	case errors.Is(cause, errTimeout):
		return fault.New(fault.ToolTimeout).Wrap(cause)
	case errors.Is(cause, errStopping) && ran:
		return fault.New(fault.ToolLost).Wrap(cause)
	case errors.Is(cause, errStopping):
		return fault.New(fault.ToolsDown).Wrap(cause)
	}
	return fault.New(fault.ToolCancelled).Wrap(cause)
}

// meta is what goes with a request: the trace for all servers, the tenant for the
// built-in one, which keeps a folder for each.
func (s *Service) meta(ctx context.Context, srv *server, tenant id.Tenant) mcp.Meta {
	m := mcp.Meta{}
	if parent := telemetry.Inject(ctx); parent != "" {
		m["traceparent"] = parent
	}
	if srv == s.builtin {
		m[fsserver.TenantKey] = tenant.String()
	}
	return m
}

// answered turns what a tool answered into a result of at most limit bytes, unless
// it does not fit the tool's schema.
func answered(res *mcp.CallToolResult, tool *known, raw bool, limit int) (Result, error) {
	if tool.out != nil && !res.IsError && res.StructuredContent != nil {
		b, err := plainJSON(res.StructuredContent)
		if err != nil {
			return Result{}, fault.New(fault.BadOutput).Wrap(err)
		}
		if err := checkOutput(tool.out, b); err != nil {
			return Result{}, err
		}
	}
	if raw {
		return renderRaw(res, limit)
	}
	return render(res, limit), nil
}

// render turns a result into text of at most limit bytes. Text is kept; of what a
// model cannot read here, its kind and size are told.
func render(res *mcp.CallToolResult, limit int) Result {
	text := textOf(res)
	out := Result{Text: text, Bytes: len(text), IsError: res.IsError}
	if len(text) > limit {
		out.Text, out.Truncated = cut(text, limit), true
	}
	return out
}

func textOf(res *mcp.CallToolResult) string {
	parts := texts(res)
	if extra := structured(res, parts); extra != "" {
		parts = append(parts, extra)
	}
	return strings.ToValidUTF8(strings.Join(parts, "\n"), "\uFFFD")
}

func texts(res *mcp.CallToolResult) []string {
	var parts []string
	for _, c := range res.Content {
		parts = append(parts, contentText(c))
	}
	return parts
}

// renderRaw turns a result into the array of its content as JSON of at most limit
// bytes. If it is longer there is one text, as render has it, cut further until its
// JSON fits.
func renderRaw(res *mcp.CallToolResult, limit int) (Result, error) {
	all := append([]mcp.Content{}, res.Content...)
	if extra := structured(res, texts(res)); extra != "" {
		all = append(all, &mcp.TextContent{Text: extra})
	}
	data, err := plainJSON(all)
	out := Result{Data: data, Bytes: len(data), IsError: res.IsError}
	if err != nil || len(data) <= limit {
		return out, err
	}
	text := textOf(res)
	for n := min(limit, len(text)); n >= 0; n -= max(1, (len(out.Data)-limit)/6) {
		if n < len(text) {
			text = cut(text, n)
		}
		out.Data, err = plainJSON([]mcp.Content{&mcp.TextContent{Text: text}})
		if err != nil || len(out.Data) <= limit {
			break
		}
	}
	out.Truncated = true
	return out, err
}

// structured returns the structured content as JSON, unless the content says the
// same. Servers should repeat it there, but not all do.
func structured(res *mcp.CallToolResult, parts []string) string {
	if res.StructuredContent == nil {
		return ""
	}
	b, err := json.Marshal(res.StructuredContent)
	if err != nil {
		return ""
	}
	var want, got any
	if json.Unmarshal(b, &want) != nil || repeats(want, res.Content, parts) {
		return ""
	}
	for _, p := range parts {
		if json.Unmarshal([]byte(p), &got) == nil && reflect.DeepEqual(want, got) {
			return ""
		}
	}
	return string(b)
}

// repeats reports whether the structured content is a wrap of the content: an object
// whose one member is the text, or all of the content. Servers do so that have a
// schema for the sake of having one.
func repeats(structured any, content []mcp.Content, parts []string) bool {
	object, ok := structured.(map[string]any)
	if !ok || len(object) != 1 {
		return false
	}
	for _, v := range object {
		if text, ok := v.(string); ok {
			return text == strings.Join(parts, "\n")
		}
		var all any
		b, err := json.Marshal(content)
		return err == nil && json.Unmarshal(b, &all) == nil && reflect.DeepEqual(v, all)
	}
	return false
}

// cut returns the longest beginning of s within limit that ends with a whole
// character. The copy lets go of the rest.
func cut(s string, limit int) string {
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return strings.Clone(s[:limit])
}

func contentText(c mcp.Content) string {
	switch c := c.(type) {
	case *mcp.TextContent:
		return c.Text
	case *mcp.ImageContent:
		return fmt.Sprintf("[An image, %s, %d bytes]", shorten(c.MIMEType, maxTitle), len(c.Data))
	case *mcp.AudioContent:
		return fmt.Sprintf("[A sound, %s, %d bytes]", shorten(c.MIMEType, maxTitle), len(c.Data))
	case *mcp.ResourceLink:
		return fmt.Sprintf("[A link to %s: %s]", shorten(c.Name, maxTitle), shorten(c.URI, maxMessage))
	case *mcp.EmbeddedResource:
		if c.Resource != nil && c.Resource.Blob == nil {
			return c.Resource.Text
		}
	}
	return "[Content that is not text]"
}
