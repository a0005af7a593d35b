// Package service runs the tool service: MCP servers, the workspace folder and the services of the swarm, with calls from
// this process and over the bus.
package service

import (
	"context"
	"errors"
	"sync"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/rpc"
	"github.com/waggle-dev/waggle/internal/signature"
	"github.com/waggle-dev/waggle/services/tools/calls"
	"github.com/waggle-dev/waggle/services/tools/mcp"
	"github.com/waggle-dev/waggle/services/tools/remote"
	"github.com/waggle-dev/waggle/services/tools/swarm"
)

// leaveTimeout bounds the removal from the directory: the lease expires anyway.
const leaveTimeout = 2 * time.Second

// Deps are the dependencies of a service.
type Deps struct {
	Conn      *bus.Conn            // nil: calls come from this process only
	Directory *directory.Directory // nil: the service has no entry and knows no services of the swarm
	Logger    zerolog.Logger
	Registry  prometheus.Registerer // nil: metrics stay hidden
	Now       func() time.Time      // the bus' clock; nil = time.Now

	Signatures *signature.Verifier // of people's decisions; nil: no call that needs one runs
}

// Service runs the tool servers and calls their tools, for this process (it is a
// Toolbox itself) and for the bus. It is a lifecycle.Component.
type Service struct {
	cfg     Config
	deps    Deps
	log     zerolog.Logger
	metrics *metrics
	calls   *calls.Table
	servers []*mcp.Server
	builtin *mcp.Server     // nil without a built-in server
	files   *mcpsdk.Server  // the built-in server's; set by Start
	swarm   *swarm.Registry // nil without a directory on the bus

	life    context.Context //nolint:containedctx // From New to Stop.
	end     context.CancelFunc
	started chan struct{} // closed when Start has returned
	running sync.WaitGroup

	mu      sync.Mutex
	state   state
	states  map[string]string // of the servers, by their names
	rpc     *rpc.Server       // answers the bus; nil without one
	lease   *directory.Lease  // nil without a directory
	shown   []byte            // the last entry in it
	stopped sync.Once
}

type state int

const (
	fresh state = iota
	running
	over
)

var (
	errStarted             = errors.New("the tool service has been started or stopped before")
	_          remote.Host = (*Service)(nil)
)

// Find implements remote.Host.
func (s *Service) Find(key calls.Key) *calls.Run { return s.calls.Find(key) }
