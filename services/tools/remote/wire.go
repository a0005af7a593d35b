// Package remote carries tool calls over the bus: a client for workers, and a server for the tool
// service. It runs no tool itself.
package remote

import (
	"github.com/waggle-dev/waggle/internal/rpc"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/calls"
	"github.com/waggle-dev/waggle/services/tools/internal/bound"
)

// Verbs of the service.
var (
	verbList    = command.OfferTools     // listRequest -> toolPage; without a server also ToolOfferRequest -> ToolOffer
	verbServers = id.MustName("servers") // listRequest -> serverPage
	// verbsOfCalls begin a tools.Call, which is followed and cancelled by its callRef. Its progress are notifications, its
	// outcome is a tools.Result.
	verbsOfCalls = rpc.Verbs{Begin: id.MustName("call"), Attach: id.MustName("attach"), Cancel: id.MustName("cancel")}
)

// envelope bounds the size of an answer excluding its list.
const envelope = 4 << 10

// callRef identifies an earlier call.
type callRef struct {
	ID     string    `json:"id"`
	Scope  string    `json:"scope,omitempty"`
	Tenant id.Tenant `json:"tenant"`
}

func refOf(c tools.Call) callRef { return callRef{ID: c.ID, Scope: c.Scope, Tenant: c.Tenant} }

func (r callRef) key() calls.Key { return calls.Key{Tenant: r.Tenant, Scope: r.Scope, ID: r.ID} }

// listRequest asks for tools with names after After, of one server if it is named; or for servers of a kind with orders
// after After. Known is the digest of the tools on offer that the sender has.
type listRequest struct {
	Tenant id.Tenant `json:"tenant"`
	Kind   string    `json:"kind,omitempty"`
	Server string    `json:"server,omitempty"`
	After  string    `json:"after,omitempty"`
	Known  string    `json:"known,omitempty"`
}

// toolPage is a page of tools; Server has them if the request named one. More of them follow the last one. Digest is that of all
// tools on offer; Same means that the sender of the request has them: the page is empty.
type toolPage struct {
	Tools  []tools.Tool  `json:"tools"`
	Server *tools.Server `json:"server,omitempty"`
	More   bool          `json:"more,omitempty"`
	Digest string        `json:"digest,omitempty"`
	Same   bool          `json:"same,omitempty"`
}

// serverPage is a page of servers. More of them follow the last one.
type serverPage struct {
	Servers []tools.Server `json:"servers"`
	More    bool           `json:"more,omitempty"`
}

// fit encodes a result in at most limit bytes: it cuts the text until the result fits, because JSON may be longer than the
// text. It cannot cut data; data that does not fit is a fault.
func fit(r tools.Result, limit int) ([]byte, error) {
	for {
		b, err := plainjson.Marshal(r)
		if err != nil {
			return nil, err
		}
		over := len(b) - limit
		switch {
		case over > 0 && r.File != nil:
			r.File = nil // it does not fit, and goes without
			continue
		case over > 0 && len(r.Images) > 0:
			r.Images = r.Images[:len(r.Images)-1] // the text names it
			continue
		case over > 0 && r.Data != nil:
			return nil, bound.TooLong(len(r.Data), limit)
		case over <= 0 || r.Text == "":
			return b, nil
		}
		// Each byte of text is at least one byte of JSON and at most six.
		r.Text, r.Truncated = bound.Cut(r.Text, max(0, len(r.Text)-max(over/6, 1))), true
	}
}
