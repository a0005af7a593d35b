package openai

import (
	"bytes"
	"encoding/json"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/internal/upstream"
)

// usageOf reads usage; ok is false for anything else, which never costs the answer.
func usageOf(raw json.RawMessage) (u model.Usage, ok bool) {
	raw = bytes.TrimSpace(raw)
	var in usage
	if len(raw) == 0 || raw[0] != '{' {
		return u, false
	}
	_ = json.Unmarshal(raw, &in) // a member of another type is skipped, and all others are read
	if !in.Prompt.Known || !in.Completion.Known {
		return u, false
	}
	u = model.Usage{InputTokens: in.Prompt.N, OutputTokens: in.Completion.N, Known: true}
	u.TokenDetails = event.TokenDetails{
		CachedTokens:     first(in.PromptMore.Cached, in.CacheHit, in.Cached),
		CacheWriteTokens: in.PromptMore.CacheWrite.N,
		ReasoningTokens:  in.CompletionMore.Reasoning.N,
	}
	// xAI and Gemini bill reasoning as output, and count it in the total only.
	if hidden := in.Total.N - in.Prompt.N - in.Completion.N; in.Total.Known && hidden > 0 {
		if r := in.CompletionMore.Reasoning; !r.Known || r.N == hidden {
			u.OutputTokens += hidden
			u.ReasoningTokens = hidden
		}
	}
	if u.CachedTokens+u.CacheWriteTokens > u.InputTokens {
		u.CachedTokens, u.CacheWriteTokens = 0, 0
	}
	u.ReasoningTokens = min(u.ReasoningTokens, u.OutputTokens)
	return u, true
}

// first returns the first count that is known and not zero.
func first(all ...upstream.Count) int64 {
	for _, c := range all {
		if c.N > 0 {
			return c.N
		}
	}
	return 0
}
