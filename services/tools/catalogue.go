package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/waggle-dev/waggle/services/tools/fsserver"
)

const (
	// maxTools bounds the tools of one server; models get confused by far fewer.
	maxTools = 512
	// maxDescription bounds what one tool says about itself: models read all of it.
	maxDescription = 16 << 10
	// maxTitle bounds a tool's title.
	maxTitle = 200
)

// known is a tool that can be called.
type known struct {
	Tool
	schema *jsonschema.Schema // of the arguments
	out    *jsonschema.Schema // of structured results; nil = anything goes
}

// catalogue fetches the tools of a server and returns those that can be offered,
// by their offered names. A tool that cannot is reported and left out; it does not
// harm the others.
func catalogue(ctx context.Context, cs *mcp.ClientSession, cfg *ServerConfig, log zerolog.Logger) (map[string]*known, error) {
	all := make(map[string]*known)
	if caps := cs.InitializeResult().Capabilities; caps == nil || caps.Tools == nil {
		return all, nil
	}
	seen := 0
	for t, err := range cs.Tools(ctx, nil) {
		if err != nil {
			return nil, fmt.Errorf("list tools: %w", err)
		}
		if seen++; seen > maxTools {
			log.Warn().Int("limit", maxTools).Msg("tool server has too many tools, the rest is not offered")
			break
		}
		k, err := learn(cfg, t, log)
		if err != nil {
			log.Warn().Err(err).Str("tool", shorten(t.Name, maxTitle)).Msg("tool is not offered")
			continue
		}
		if other, taken := all[k.Name]; taken {
			log.Warn().Str("tool", k.Name).Str("first", other.Own).Msg("two tools of a server have one name, the second is not offered")
			continue
		}
		all[k.Name] = k
	}
	return all, nil
}

// learn checks one tool and compiles its schemas.
func learn(cfg *ServerConfig, t *mcp.Tool, log zerolog.Logger) (*known, error) {
	raw, err := json.Marshal(t.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("its input schema: %w", err)
	}
	schema, err := compileSchema(raw)
	if err != nil {
		return nil, fmt.Errorf("its input schema: %w", err)
	}
	k := &known{schema: schema, Tool: Tool{
		Kind: KindMCP, Own: t.Name,
		Name: offeredName(cfg.Name, t.Name), Server: cfg.Name, Title: shorten(t.Title, maxTitle),
		Description: shorten(t.Description, maxDescription), InputSchema: raw,
		ReadOnly: slices.Contains(cfg.ReadOnly, t.Name), Idempotent: slices.Contains(cfg.Idempotent, t.Name),
	}}
	if t.OutputSchema != nil {
		if err := k.promise(t.OutputSchema); err != nil {
			log.Warn().Err(err).Str("tool", k.Name).Msg("output schema of a tool is not usable: its results are not checked")
		}
	}
	if cfg.IgnoreHints {
		return k, nil
	}
	if h := t.Annotations; h != nil {
		k.ReadOnly = k.ReadOnly || h.ReadOnlyHint
		k.Idempotent = k.Idempotent || h.IdempotentHint
		if k.Title == "" {
			k.Title = shorten(h.Title, maxTitle)
		}
	}
	k.IdempotentUnless, _ = t.Meta[fsserver.UnlessKey].(string)
	return k, nil
}

// promise compiles the schema of the tool's structured results.
func (k *known) promise(schema any) error {
	raw, err := json.Marshal(schema)
	if err != nil {
		return err
	}
	if k.out, err = compileSchema(raw); err != nil {
		return err
	}
	k.OutputSchema = raw
	return nil
}
