package anthropic

import (
	"encoding/json"
	"fmt"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/internal/upstream"
)

// emptyText stands for a user's message without text, which the protocol refuses.
const emptyText = "(empty message)"

func params(name string, req model.Request) (sdk.MessageNewParams, error) {
	p := sdk.MessageNewParams{Model: name, MaxTokens: defaultMaxTokens}
	if req.MaxTokens > 0 {
		p.MaxTokens = int64(req.MaxTokens)
	}
	if req.System != "" {
		p.System = append(p.System, sdk.TextBlockParam{Text: req.System})
	}
	for _, m := range req.Messages {
		if m.Role == model.RoleSystem {
			p.System = append(p.System, sdk.TextBlockParam{Text: m.Content})
			continue
		}
		role, blocks := content(m)
		p.Messages = appendMessage(p.Messages, role, blocks)
	}
	for _, t := range req.Tools {
		u, err := tool(t)
		if err != nil {
			return p, err
		}
		p.Tools = append(p.Tools, u)
	}
	if !forced(req) {
		return p, nil
	}
	u, err := tool(model.ToolSpec{Name: req.Schema.Name, Description: "Gives the answer.", InputSchema: req.Schema.JSON})
	p.Tools = append(p.Tools, u)
	p.ToolChoice = sdk.ToolChoiceParamOfTool(req.Schema.Name)
	return p, err
}

// forced reports whether the request enforces the form of the answer: the model has to call a tool with it, and the
// arguments are the answer. Every Claude model can do that, but only without other tools; beside those the prompt alone asks
// for the form.
func forced(req model.Request) bool { return req.Schema != nil && len(req.Tools) == 0 }

// appendMessage adds blocks to the conversation. It joins neighbours of one role: all results of parallel calls have to be
// in the same message.
func appendMessage(all []sdk.MessageParam, role sdk.MessageParamRole, blocks []sdk.ContentBlockParamUnion) []sdk.MessageParam {
	if len(blocks) == 0 {
		return all
	}
	if n := len(all); n > 0 && all[n-1].Role == role {
		all[n-1].Content = append(all[n-1].Content, blocks...)
		return all
	}
	return append(all, sdk.MessageParam{Role: role, Content: blocks})
}

func content(m model.Message) (sdk.MessageParamRole, []sdk.ContentBlockParamUnion) {
	switch m.Role {
	case model.RoleAssistant:
		var blocks []sdk.ContentBlockParamUnion
		if m.Content != "" {
			blocks = append(blocks, sdk.NewTextBlock(m.Content))
		}
		for _, c := range m.ToolCalls {
			blocks = append(blocks, sdk.NewToolUseBlock(c.ID, upstream.History(c.Arguments), c.Name))
		}
		return sdk.MessageParamRoleAssistant, blocks
	case model.RoleTool:
		b := sdk.ToolResultBlockParam{ToolUseID: m.ToolCallID}
		if m.Content != "" {
			b.Content = []sdk.ToolResultBlockParamContentUnion{{OfText: &sdk.TextBlockParam{Text: m.Content}}}
		}
		if m.IsError {
			b.IsError = param.NewOpt(true)
		}
		return sdk.MessageParamRoleUser, []sdk.ContentBlockParamUnion{{OfToolResult: &b}}
	}
	text := m.Content
	if text == "" {
		text = emptyText
	}
	return sdk.MessageParamRoleUser, []sdk.ContentBlockParamUnion{sdk.NewTextBlock(text)}
}

func tool(t model.ToolSpec) (sdk.ToolUnionParam, error) {
	if !json.Valid(t.InputSchema) {
		return sdk.ToolUnionParam{}, fault.New(fault.Internal).Wrap(fmt.Errorf("input schema of tool %s is not valid JSON", t.Name))
	}
	p := sdk.ToolParam{
		Name:        t.Name,
		InputSchema: param.Override[sdk.ToolInputSchemaParam](t.InputSchema), // exactly as the tool declares it
	}
	if t.Description != "" {
		p.Description = param.NewOpt(t.Description)
	}
	return sdk.ToolUnionParam{OfTool: &p}, nil
}

const (
	prefix  = "anthropic"
	baseURL = "https://api.anthropic.com"
	// defaultMaxTokens is the largest limit that every Claude model accepts; the protocol requires a limit.
	defaultMaxTokens = 4096
)
