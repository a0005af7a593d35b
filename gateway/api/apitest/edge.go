package apitest

import (
	"time"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
)

// Edge returns an edge whose principals see all of their tenant, and whose commands leave unsigned.
func Edge(conn *bus.Conn, log *eventlog.Store, commands *command.Sender) *edge.Edge {
	return &edge.Edge{Source: "apitest", Clock: time.Now, Logger: zerolog.Nop(), Bus: conn, Log: log, Commands: commands}
}
