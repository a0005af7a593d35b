package anthropic_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/modeltest"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// cache counts tokens as Anthropic documents it: a prefix that ends at a mark is written, and read when a later request begins
// with it. Tools come before the instructions, and those before the messages.
type cache struct {
	mu    sync.Mutex
	known map[string]bool
}

// count returns the tokens of a request that are read from the cache, written to it, and neither.
func (c *cache) count(t *testing.T, body []byte) (read, written, plain int) {
	t.Helper()
	var req struct {
		Tools    []map[string]json.RawMessage
		System   []map[string]json.RawMessage
		Messages []struct {
			Role    string
			Content []map[string]json.RawMessage
		}
	}
	require.NoError(t, json.Unmarshal(body, &req))
	blocks := append(req.Tools, req.System...)
	for _, m := range req.Messages {
		blocks = append(blocks, m.Content...)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var prefix strings.Builder
	marks := 0
	last, hit := 0, 0
	var prefixes []string
	for _, b := range blocks {
		_, marked := b["cache_control"]
		delete(b, "cache_control")
		raw, err := json.Marshal(b)
		require.NoError(t, err)
		prefix.Write(raw)
		if c.known[prefix.String()] { // a hit needs no mark at the same place
			hit = prefix.Len()
		}
		if marked {
			marks++
			last = prefix.Len()
			prefixes = append(prefixes, prefix.String())
		}
	}
	require.LessOrEqual(t, marks, 4, "the protocol allows four")
	for _, p := range prefixes {
		c.known[p] = true
	}
	return hit / 4, max(0, last-hit) / 4, (prefix.Len() - max(last, hit)) / 4
}

// A loop of ten calls of tools reads nearly all of its growing conversation from the cache.
func TestAToolLoopIsCached(t *testing.T) {
	c := &cache{known: map[string]bool{}}
	const turns = 10
	m, _ := modeltest.Serve(t, open, model.Env{}.With("anthropic", model.Access{Key: "test-key"}), func(x *scripted.Exchange) scripted.Reply {
		read, written, plain := c.count(t, x.Body)
		use := fmt.Sprintf(`{"type":"message_start","message":{"model":"x","usage":{"input_tokens":%d,"cache_read_input_tokens":%d,"cache_creation_input_tokens":%d,"output_tokens":1}}}`, plain, read, written)
		if x.N > turns {
			return stream(use, block, hi, end("end_turn"), stop)
		}
		call := fmt.Sprintf(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c%d","name":"workspace_read_file","input":{"path":"notes.md"}}}`, x.N)
		return stream(use, call, end("tool_use"), stop)
	})
	req := modeltest.Ask("Read the files one after the other.")
	req.System = strings.Repeat("Be careful. ", 300)
	var total, cached, written int64
	for range turns + 1 {
		r, err := modeltest.Generate(t.Context(), t, m, req)
		require.NoError(t, err)
		total, cached, written = total+r.Usage.InputTokens, cached+r.Usage.CachedTokens, written+r.Usage.CacheWriteTokens
		req = modeltest.Answer(req, r, func(event.ToolCall) (string, bool) { return strings.Repeat("a line of the file\n", 100), false })
	}
	price := func(plain, read, write int64) float64 {
		return float64(plain) + 0.1*float64(read) + 1.25*float64(write)
	}
	without, with := price(total, 0, 0), price(total-cached-written, cached, written)
	t.Logf("%d turns: %d input tokens, %d read from the cache, %d written; the input costs %.0f %% of its price without a cache", turns, total, cached, written, 100*with/without)
	require.Less(t, with, 0.4*without)
}
