package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/internal/bound"
	"github.com/waggle-dev/waggle/services/tools/internal/offer"
	"github.com/waggle-dev/waggle/services/tools/schema"
)

// catalogue fetches the tools of a server and returns the valid ones by their offered names. It logs and omits an invalid
// tool, without harm to the others.
func catalogue(ctx context.Context, cs *mcp.ClientSession, cfg *Config, log zerolog.Logger) (map[string]*offer.Tool, error) {
	all := make(map[string]*offer.Tool)
	if caps := cs.InitializeResult().Capabilities; caps == nil || caps.Tools == nil {
		return all, nil
	}
	seen := 0
	for t, err := range cs.Tools(ctx, nil) {
		if err != nil {
			return nil, fmt.Errorf("list tools: %w", err)
		}
		if seen++; seen > bound.MaxTools {
			log.Warn().Int("limit", bound.MaxTools).Msg("drop tools beyond limit")
			break
		}
		k, err := learn(cfg, t, log)
		if err != nil {
			log.Warn().Err(err).Str("tool", bound.Shorten(t.Name, bound.Title)).Msg("drop tool")
			continue
		}
		if u := k.Unchecked(); len(u) > 0 {
			log.Warn().Str("tool", k.Name).Strs("unchecked", u).Msg("skip parts of schema")
		}
		if other, taken := all[k.Name]; taken {
			log.Warn().Str("tool", k.Name).Str("first", other.Own).Msg("drop second tool of same name")
			continue
		}
		all[k.Name] = k
	}
	return all, nil
}

// learn checks one tool and compiles its schemas.
func learn(cfg *Config, t *mcp.Tool, log zerolog.Logger) (*offer.Tool, error) {
	raw, err := json.Marshal(t.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("its input schema: %w", err)
	}
	arguments, err := schema.Compile(raw)
	if err != nil {
		return nil, fmt.Errorf("its input schema: %w", err)
	}
	k := &offer.Tool{Arguments: arguments, Tool: tools.Tool{
		Kind: tools.KindMCP, Own: t.Name,
		Name: offer.Name(cfg.Name, t.Name), Server: cfg.Name, Title: bound.Shorten(t.Title, bound.Title),
		Description: bound.Shorten(t.Description, bound.Description), InputSchema: raw,
		ReadOnly: slices.Contains(cfg.ReadOnly, t.Name), Idempotent: slices.Contains(cfg.Idempotent, t.Name),
	}}
	k.Policy, k.Agents = policy(cfg, t), cfg.Rules.Agents
	if t.OutputSchema != nil {
		if err := promise(k, t.OutputSchema); err != nil {
			log.Warn().Err(err).Str("tool", k.Name).Msg("ignore output schema")
		}
	}
	if cfg.IgnoreHints {
		return k, nil
	}
	if h := t.Annotations; h != nil {
		k.ReadOnly = k.ReadOnly || h.ReadOnlyHint
		k.Idempotent = k.Idempotent || h.IdempotentHint
		if k.Title == "" {
			k.Title = bound.Shorten(h.Title, bound.Title)
		}
	}
	k.IdempotentUnless, _ = t.Meta[tools.MetaUnless].(string)
	return k, nil
}

// policy returns the operator's policy of a tool.
func policy(cfg *Config, t *mcp.Tool) event.ToolPolicy {
	rules := cfg.Rules
	rules.ReadOnly = slices.Concat(rules.ReadOnly, cfg.ReadOnly)
	return rules.Policy(t.Name, !cfg.IgnoreHints && t.Annotations != nil && t.Annotations.ReadOnlyHint)
}

// promise compiles the schema of the tool's structured results.
func promise(k *offer.Tool, result any) error {
	raw, err := json.Marshal(result)
	if err != nil {
		return err
	}
	if k.Result, err = schema.Compile(raw); err != nil {
		return err
	}
	k.OutputSchema = raw
	return nil
}
