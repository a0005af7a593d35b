package e2e_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/waggle-dev/waggle/e2e/harness/models"
	"github.com/waggle-dev/waggle/e2e/harness/verify"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// stampTool has a tool that counts how often it put its stamp on each paper.
type stampTool struct {
	mu     sync.Mutex
	stamps map[string]int
}

// serveStampTool serves the tool stamp and returns its lines for the end of the list of
// servers in the configuration.
func serveStampTool(t *testing.T) (*stampTool, string) {
	t.Helper()
	o := &stampTool{stamps: map[string]int{}}
	srv := mcp.NewServer(&mcp.Implementation{Name: "desk", Version: "1"}, nil)
	type in struct {
		Paper string `json:"paper"`
	}
	mcp.AddTool(srv, &mcp.Tool{Name: "stamp", Description: "stamps a paper"},
		func(_ context.Context, _ *mcp.CallToolRequest, a in) (*mcp.CallToolResult, any, error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.stamps[a.Paper]++
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "stamped " + a.Paper}}}, nil, nil
		})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv }, nil))
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return o, "    - name: desk\n      url: " + web.URL + "\n"
}

func (o *stampTool) on(paper string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stamps[paper]
}

// stampingMembers stamp what they are told to, and say what became of it.
func stampingMembers() scripted.Script {
	return func(x *scripted.Exchange) scripted.Reply {
		last := x.Prompt.Messages[len(x.Prompt.Messages)-1]
		if last.Role == "tool" {
			return say("so it is: " + last.Content)
		}
		return models.Calls("desk_stamp", object{"paper": paperIn(last.Content)})
	}
}

// paperIn is the last word.
func paperIn(said string) string {
	words := strings.Fields(said)
	return words[len(words)-1]
}

// agency is a team in which people are asked about each stamp.
var agency = object{
	"name": "agency", "coordinator": "Lead",
	"members": []object{
		{"name": "Lead", "tools": []string{"desk/stamp"}},
		{"name": "cellar", "team": object{
			"name": "cellar", "coordinator": "Chief",
			"members": []object{{"name": "Chief"}, {"name": "Clerk", "tools": []string{"desk/stamp"}}},
		}},
	},
}

func eventsOf(stored []verify.Stored) []event.Event {
	out := make([]event.Event, len(stored))
	for i, e := range stored {
		out[i] = e.Event
	}
	return out
}
