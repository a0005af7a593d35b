package tools

import (
	"fmt"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/command"
)

// ServiceName is the service in subjects and in the directory.
var ServiceName = command.Tools

// BuiltinServer is the name of the built-in provider: the workspace folder.
const BuiltinServer = "workspace"

// Card is the service's entry in the directory.
type Card struct {
	Servers []string `json:"servers"`        // the configured servers
	Down    []string `json:"down,omitempty"` // the servers without a connection
	// Reports say of servers why they have no connection, which tools are not on offer, and how many programs they have.
	Reports map[string]Report `json:"reports,omitempty"`
}

// Report describes the condition of a server: what is wrong with it, and how many programs it has for tenants.
type Report struct {
	Trouble string    `json:"trouble,omitempty"`
	LeftOut []LeftOut `json:"left_out,omitempty"`
	Tenants bool      `json:"tenants,omitempty"` // only some tenants may see the server

	Programs int `json:"programs,omitempty"` // of tenants that run, of a server with one for each
}

const (
	// cardTrouble, cardLeft and cardReports bound what a card reports of a server, the tools of it and all in bytes: every
	// process reads the cards of all.
	cardTrouble = 1000
	cardLeft    = 8
	cardReports = 64 << 10
)

// Add adds a report to the card, as far as it has room.
func (c *Card) Add(server string, r Report) {
	if r.Trouble == "" && len(r.LeftOut) == 0 && r.Programs == 0 {
		return
	}
	if len(r.Trouble) > cardTrouble {
		r.Trouble = strings.ToValidUTF8(r.Trouble[:cardTrouble], "") + "..."
	}
	if n := len(r.LeftOut); n > cardLeft {
		r.LeftOut = append(slices.Clone(r.LeftOut[:cardLeft-1]), LeftOut{Why: fmt.Sprintf("%d more", n-cardLeft+1)})
	}
	room := cardReports - len(r.Trouble)
	for _, other := range c.Reports {
		room -= len(other.Trouble)
	}
	if room < 0 {
		return
	}
	if c.Reports == nil {
		c.Reports = map[string]Report{}
	}
	c.Reports[server] = r
}

// Members of _meta between this service and its MCP servers.
const (
	// MetaTenant, of a call, names the tenant whose folder the call uses.
	MetaTenant = "waggle.dev/tenant"
	// MetaUnless, of a tool, names the boolean argument without which a call is idempotent.
	MetaUnless = "waggle.dev/idempotentUnless"
	// MetaFile, of a result, holds the contents of the file that a call has extended, in base64.
	MetaFile = "waggle.dev/file"
)
