package anthropic

import (
	"encoding/json"
	"fmt"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/internal/upstream"
)

// emptyText stands for a user's message without text, which the protocol refuses.
const emptyText = "(empty message)"

func requestOf(name string, req model.Request) (request, error) {
	p := request{Model: name, MaxTokens: defaultMaxTokens, Stream: true}
	if req.MaxTokens > 0 {
		p.MaxTokens = req.MaxTokens
	}
	if req.System != "" {
		p.System = append(p.System, text(req.System))
	}
	for _, m := range req.Messages {
		if m.Role == model.RoleSystem {
			p.System = append(p.System, text(m.Content))
			continue
		}
		role, blocks := content(m)
		p.Messages = appendMessage(p.Messages, role, blocks)
	}
	for _, t := range req.Tools {
		u, err := toolOf(t)
		if err != nil {
			return p, err
		}
		p.Tools = append(p.Tools, u)
	}
	if !forced(req) {
		return p, nil
	}
	u, err := toolOf(model.ToolSpec{Name: req.Schema.Name, Description: "Gives the answer.", InputSchema: req.Schema.JSON})
	p.Tools = append(p.Tools, u)
	p.ToolChoice = &toolChoice{Type: "tool", Name: req.Schema.Name}
	return p, err
}

// forced reports whether the request enforces the form of the answer: the model has to call a tool with it, and the
// arguments are the answer. Every Claude model can do that, but only without other tools; beside those the prompt alone asks
// for the form.
func forced(req model.Request) bool { return req.Schema != nil && len(req.Tools) == 0 }

// appendMessage adds blocks to the conversation. It joins neighbours of one role: all results of parallel calls have to be
// in the same message.
func appendMessage(all []message, role string, blocks []block) []message {
	if len(blocks) == 0 {
		return all
	}
	if n := len(all); n > 0 && all[n-1].Role == role {
		all[n-1].Content = append(all[n-1].Content, blocks...)
		return all
	}
	return append(all, message{Role: role, Content: blocks})
}

func text(s string) block { return block{Type: typeText, Text: s} }

func images(all []model.Image) (out []block) {
	for _, i := range all {
		out = append(out, block{Type: typeImage, Source: &source{Type: sourceBase64, MediaType: i.MediaType, Data: i.Data}})
	}
	return out
}

func content(m model.Message) (role string, blocks []block) {
	switch m.Role {
	case model.RoleAssistant:
		if m.Content != "" {
			blocks = append(blocks, text(m.Content))
		}
		for _, c := range m.ToolCalls {
			blocks = append(blocks, block{Type: typeToolUse, ID: c.ID, Name: c.Name, Input: upstream.History(c.Arguments)})
		}
		return roleAssistant, blocks
	case model.RoleTool:
		b := block{Type: typeToolResult, ToolUseID: m.ToolCallID, IsError: m.IsError}
		if m.Content != "" {
			b.Content = []block{text(m.Content)}
		}
		b.Content = append(b.Content, images(m.Images)...)
		return roleUser, []block{b}
	case model.RoleUser:
		if blocks = images(m.Images); m.Content != "" {
			blocks = append(blocks, text(m.Content))
		}
		if len(blocks) > 0 {
			return roleUser, blocks
		}
	}
	return roleUser, []block{text(emptyText)}
}

func toolOf(t model.ToolSpec) (tool, error) {
	if !json.Valid(t.InputSchema) {
		return tool{}, fault.New(fault.Internal).Wrap(fmt.Errorf("input schema of tool %s is not valid JSON", t.Name))
	}
	return tool{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema}, nil
}

const (
	prefix  = "anthropic"
	baseURL = "https://api.anthropic.com"
	version = "2023-06-01" // of the protocol
	// defaultMaxTokens is the largest limit that every Claude model accepts; the protocol requires a limit.
	defaultMaxTokens = 4096
)
