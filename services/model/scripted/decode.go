package scripted

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/prompt"
)

// decode reads the request's body.
func (x *Exchange) decode() error {
	var err error
	if x.Protocol == OpenAI {
		err = x.decodeOpenAI()
	} else {
		err = x.decodeAnthropic()
	}
	if err != nil {
		return fmt.Errorf("decode request: %w", err)
	}
	x.Stage, x.Data, _ = prompt.Read(x.Prompt)
	if x.Stage == event.StageSolving && x.Data.Task != nil {
		x.Task = x.Data.Task.ID
	}
	return nil
}

type openaiRequest struct {
	Model               string `json:"model"`
	Stream              bool   `json:"stream"`
	MaxTokens           int    `json:"max_tokens"`
	MaxCompletionTokens int    `json:"max_completion_tokens"`
	ResponseFormat      struct {
		JSONSchema *struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
	Messages []struct {
		Role       string          `json:"role"`
		Content    json.RawMessage `json:"content"`
		ToolCallID string          `json:"tool_call_id"`
		ToolCalls  []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"messages"`
	Tools []struct {
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
}

func (x *Exchange) decodeOpenAI() error {
	var r openaiRequest
	if err := json.Unmarshal(x.Body, &r); err != nil {
		return err
	}
	if !r.Stream {
		return fmt.Errorf("only streams are answered")
	}
	x.Model = r.Model
	x.Prompt.MaxTokens = max(r.MaxTokens, r.MaxCompletionTokens)
	if f := r.ResponseFormat.JSONSchema; f != nil {
		x.Prompt.Schema = &model.Schema{Name: f.Name, JSON: f.Schema}
	}
	for _, m := range r.Messages {
		text, err := plainText(m.Content)
		if err != nil {
			return err
		}
		out := model.Message{Role: m.Role, Content: text, ToolCallID: m.ToolCallID, Images: imagesIn(m.Content)}
		for _, c := range m.ToolCalls {
			if !json.Valid([]byte(c.Function.Arguments)) { // as vLLM and llama.cpp require
				return fmt.Errorf("arguments of call %s are not valid JSON", c.ID)
			}
			out.ToolCalls = append(out.ToolCalls, event.ToolCall{
				ID: c.ID, Name: c.Function.Name, Arguments: json.RawMessage(c.Function.Arguments),
			})
		}
		x.add(out)
	}
	for _, t := range r.Tools {
		f := t.Function
		x.Prompt.Tools = append(x.Prompt.Tools, model.ToolSpec{Name: f.Name, Description: f.Description, InputSchema: f.Parameters})
	}
	return nil
}

type anthropicRequest struct {
	Model     string          `json:"model"`
	Stream    bool            `json:"stream"`
	MaxTokens int             `json:"max_tokens"`
	System    json.RawMessage `json:"system"`
	Choice    struct {
		Type string `json:"type"`
		Name string `json:"name"`
	} `json:"tool_choice"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
	} `json:"tools"`
}

type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
	Source    struct {
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	} `json:"source"`
}

func (x *Exchange) decodeAnthropic() error {
	var r anthropicRequest
	if err := json.Unmarshal(x.Body, &r); err != nil {
		return err
	}
	if !r.Stream || r.MaxTokens <= 0 {
		return fmt.Errorf("only streams with max_tokens are answered")
	}
	x.Model, x.Prompt.MaxTokens = r.Model, r.MaxTokens
	var err error
	if x.Prompt.System, err = plainText(r.System); err != nil {
		return err
	}
	for _, m := range r.Messages {
		if err := x.addBlocks(m.Role, m.Content); err != nil {
			return err
		}
	}
	for _, t := range r.Tools {
		if r.Choice.Type == "tool" && t.Name == r.Choice.Name { // it stands for the form of the answer
			x.Prompt.Schema = &model.Schema{Name: t.Name, JSON: t.InputSchema}
			continue
		}
		x.Prompt.Tools = append(x.Prompt.Tools, model.ToolSpec{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema})
	}
	return nil
}

// addBlocks splits one message of the messages protocol: each tool result in it becomes a message of its own.
func (x *Exchange) addBlocks(role string, content json.RawMessage) error {
	var blocks []anthropicBlock
	if json.Unmarshal(content, &blocks) != nil {
		text, err := plainText(content)
		x.add(model.Message{Role: role, Content: text})
		return err
	}
	rest := model.Message{Role: role}
	for _, b := range blocks {
		switch b.Type {
		case "text":
			rest.Content += b.Text
		case "image":
			rest.Images = append(rest.Images, model.Image{MediaType: b.Source.MediaType, Data: b.Source.Data})
		case "tool_use":
			rest.ToolCalls = append(rest.ToolCalls, event.ToolCall{ID: b.ID, Name: b.Name, Arguments: b.Input})
		case "tool_result":
			text, err := plainText(b.Content)
			if err != nil {
				return err
			}
			x.add(model.Message{Role: model.RoleTool, Content: text, ToolCallID: b.ToolUseID, IsError: b.IsError, Images: imagesIn(b.Content)})
		}
	}
	if rest.Content != "" || rest.ToolCalls != nil || rest.Images != nil {
		x.add(rest)
	}
	return nil
}

func (x *Exchange) add(m model.Message) {
	if m.Role == model.RoleSystem && len(x.Prompt.Messages) == 0 {
		x.Prompt.System += m.Content
		return
	}
	x.Prompt.Messages = append(x.Prompt.Messages, m)
}

// imagesIn reads the images of a list of parts of either protocol, nil for a text.
func imagesIn(raw json.RawMessage) (out []model.Image) {
	var parts []struct {
		anthropicBlock
		ImageURL struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return nil
	}
	for _, p := range parts {
		media, data, inline := strings.Cut(strings.TrimPrefix(p.ImageURL.URL, "data:"), ";base64,")
		switch {
		case p.Type == "image":
			out = append(out, model.Image{MediaType: p.Source.MediaType, Data: p.Source.Data})
		case p.Type == "image_url" && inline:
			out = append(out, model.Image{MediaType: media, Data: data})
		}
	}
	return out
}

// plainText reads a text that is a string or a list of text parts.
func plainText(raw json.RawMessage) (string, error) {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) == nil {
		return s, nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return "", err
	}
	for _, p := range parts {
		s += p.Text
	}
	return s, nil
}
