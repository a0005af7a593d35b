package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/internal/bound"
	"github.com/waggle-dev/waggle/services/tools/internal/offer"
	"github.com/waggle-dev/waggle/services/tools/schema"
)

// maxPages bounds the pages of a list: a server may offer the same page for ever.
const maxPages = 100

// listing is the list of a server's tools.
type listing struct {
	offered map[string]*offer.Tool // by their offered names
	left    []tools.LeftOut
	more    int      // tools that are not on offer beside those
	passed  []string // parts of the tools that do not count
}

// leave records a tool that is not on offer.
func (l *listing) leave(tool, why string) {
	if len(l.left) == maxLeft {
		l.more++
		return
	}
	l.left = append(l.left, tools.LeftOut{Tool: bound.Shorten(tool, bound.Title), Why: bound.Shorten(why, bound.Title)})
}

// catalogue fetches the tools of a server. An invalid tool is left out, without harm to the others.
func catalogue(ctx context.Context, cs *mcp.ClientSession, cfg *Config) (*listing, error) {
	l := &listing{offered: make(map[string]*offer.Tool)}
	if caps := cs.InitializeResult().Capabilities; caps == nil || caps.Tools == nil {
		return l, nil
	}
	seen := map[string]bool{}
	for cursor, pages := "", 1; ; pages++ {
		page, err := cs.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, fmt.Errorf("list tools: %w", err)
		}
		full := l.add(cfg, page)
		cursor = page.NextCursor
		switch {
		case cursor == "":
		case full:
			l.leave("", fmt.Sprintf("further tools: a server may have %d", bound.MaxTools))
		case pages == maxPages:
			l.leave("", fmt.Sprintf("further tools: a list may have %d pages", maxPages))
		case seen[cursor]:
			l.leave("", "further tools: the server names a page of its list twice (nextCursor)")
		default:
			seen[cursor] = true
			continue
		}
		if l.more > 0 {
			l.left = append(l.left, tools.LeftOut{Why: fmt.Sprintf("%d more", l.more)})
		}
		return l, nil
	}
}

// add adds a page of tools. It reports whether no more fit.
func (l *listing) add(cfg *Config, page *mcp.ListToolsResult) (full bool) {
	var did mended
	if b, err := json.Marshal(page.Meta[metaMended]); err == nil {
		_ = json.Unmarshal(b, &did) // mendList has made it
	}
	for _, e := range did.Left {
		l.leave(e.Tool, e.Why)
	}
	l.more += did.More
	l.passed = append(l.passed, did.Passed[:min(len(did.Passed), maxLeft)]...)
	for _, t := range page.Tools {
		// Those that are left in the end are those that the SDK has taken out.
		if i := slices.Index(did.Names, t.Name); i >= 0 {
			did.Names = slices.Delete(did.Names, i, i+1)
		}
		if len(l.offered) == bound.MaxTools {
			l.leave(t.Name, fmt.Sprintf("a server may have %d tools", bound.MaxTools))
			full = true
			continue
		}
		k, err := l.learn(cfg, t)
		if err != nil {
			l.leave(t.Name, err.Error())
			continue
		}
		if other, taken := l.offered[k.Name]; taken {
			l.leave(t.Name, fmt.Sprintf("the tool %s before it has its name, %s", bound.Shorten(other.Own, bound.Title), k.Name))
			continue
		}
		l.offered[k.Name] = k
		for _, u := range k.Unchecked() {
			if len(l.passed) < maxLeft {
				l.passed = append(l.passed, fmt.Sprintf("a part of the schema of %s is not checked: %s", bound.Shorten(t.Name, bound.Title), bound.Shorten(u, bound.Title)))
			}
		}
	}
	for _, name := range did.Names {
		l.leave(name, "its schema puts arguments into HTTP headers (x-mcp-header) in a way that the protocol does not allow")
	}
	return full
}

// learn checks one tool and compiles its schemas.
func (l *listing) learn(cfg *Config, t *mcp.Tool) (*offer.Tool, error) {
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
	k.Policy = policy(cfg, t)
	k.Agents = cfg.Rules.Agents || cfg.Rules.AgentsRead && hinted(cfg, t) && k.Policy.Approval != event.ApprovalAlways
	if t.OutputSchema != nil {
		if err := promise(k, t.OutputSchema); err != nil {
			l.passed = append(l.passed, fmt.Sprintf("outputSchema of %s: %s", bound.Shorten(t.Name, bound.Title), bound.Shorten(err.Error(), bound.Title)))
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
	return rules.Policy(t.Name, hinted(cfg, t))
}

// hinted reports whether the server says that a tool changes nothing.
func hinted(cfg *Config, t *mcp.Tool) bool {
	return !cfg.IgnoreHints && t.Annotations != nil && t.Annotations.ReadOnlyHint
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
