// Command hostile is a tool server with one tool for each attack on the machine it runs on. A tool that succeeds answers; a
// refused one fails.
package main

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// target is what the test offers for attack.
type target struct {
	PID      int    `json:"pid,omitempty"`    // the process that started this one
	Victim   int    `json:"victim,omitempty"` // another process of the same user
	Address  uint64 `json:"address,omitempty"`
	Secret   string `json:"secret,omitempty"` // at the address
	File     string `json:"file,omitempty"`
	Folder   string `json:"folder,omitempty"`
	TCP      string `json:"tcp,omitempty"`
	UDP      string `json:"udp,omitempty"`
	Unix     string `json:"unix,omitempty"`
	Abstract string `json:"abstract,omitempty"`
	N        int    `json:"n,omitempty"`
}

// attacks are the tools by their names.
var attacks = map[string]func(target) error{}

func main() {
	s := mcp.NewServer(&mcp.Implementation{Name: "hostile", Version: "1"}, nil)
	for name, attack := range attacks {
		mcp.AddTool(s, &mcp.Tool{Name: name}, func(_ context.Context, _ *mcp.CallToolRequest, t target) (*mcp.CallToolResult, any, error) {
			if err := attack(t); err != nil {
				return nil, nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "succeeded"}}}, nil, nil
		})
	}
	_ = s.Run(context.Background(), &mcp.StdioTransport{})
}
