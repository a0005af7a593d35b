package letters

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/rpc"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Config describes the server of a process.
type Config struct {
	Queues   []id.Name // services whose commands the process handles
	Logger   zerolog.Logger
	Registry prometheus.Registerer // may be nil
}

// NewServer returns a component that returns commands to the queues of the process' services, when operators ask for it.
func (b *Box) NewServer(cfg Config) *rpc.Server {
	s := rpc.NewServer(b.conn, rpc.Config{
		Service: cmd.Letters, Description: "Returns commands that were given up to their queue", Logger: cfg.Logger, Registry: cfg.Registry,
	})
	for _, service := range cfg.Queues {
		rpc.Handle(s, service, func(ctx context.Context, in cmd.LetterRequest) (cmd.ResendReply, error) {
			return b.Resend(ctx, service, in)
		})
	}
	return s
}
