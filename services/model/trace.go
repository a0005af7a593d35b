package model

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/waggle-dev/waggle/internal/telemetry"
)

// traced is a model whose calls are spans.
type traced struct {
	Model
	provider, name string
}

// Generate implements Model inside one client span a call, attempts included. The span holds the attributes of the
// conventions for models, and none of the conversation.
func (m *traced) Generate(ctx context.Context, req Request, to Listener) (r Reply, err error) {
	name := req.Pick(m.provider, m.name)
	ctx, span := telemetry.Start(ctx, "chat "+name, trace.SpanKindClient,
		telemetry.OperationChat, telemetry.KeyProvider.String(m.provider), telemetry.KeyRequestModel.String(name))
	defer func() { telemetry.End(span, err) }()
	if req.MaxTokens > 0 {
		span.SetAttributes(telemetry.KeyMaxTokens.Int(req.MaxTokens))
	}
	r, err = m.Model.Generate(ctx, req, to)
	if err != nil {
		return r, err
	}
	span.SetAttributes(telemetry.KeyResponseModel.String(r.Model), telemetry.KeyFinishReasons.StringSlice([]string{r.StopReason}))
	if r.Usage.Known {
		span.SetAttributes(telemetry.KeyInputTokens.Int64(r.Usage.InputTokens), telemetry.KeyOutputTokens.Int64(r.Usage.OutputTokens))
		if d := r.Usage.TokenDetails; d.CachedTokens+d.CacheWriteTokens > 0 {
			span.SetAttributes(telemetry.KeyCachedTokens.Int64(d.CachedTokens), telemetry.KeyCacheTokens.Int64(d.CacheWriteTokens))
		}
	}
	return r, nil
}
