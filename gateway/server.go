package gateway

import (
	"context"
	"net"

	"github.com/waggle-dev/waggle/internal/lifecycle"
)

var _ lifecycle.Component = (*Server)(nil)

// Server is one gateway. It implements lifecycle.Component.
type Server struct {
	cfg Config
	dep Deps
}

// New returns a gateway that is not started, or an error that names the option
// which cannot be used. Without authentication it refuses any address but a
// loopback one.
func New(cfg Config, dep Deps) (*Server, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if err := dep.check(); err != nil {
		return nil, err
	}
	return &Server{cfg: cfg.withDefaults(), dep: dep}, nil
}

// Name implements lifecycle.Component.
func (s *Server) Name() string { return "gateway" }

// Addr returns the address listened on, or nil before Start.
func (s *Server) Addr() net.Addr { return nil }

// Start implements lifecycle.Component.
func (s *Server) Start(context.Context) error { return nil }

// Drain implements lifecycle.Component.
func (s *Server) Drain(context.Context) error { return nil }

// Stop implements lifecycle.Component.
func (s *Server) Stop() {}

// Failed implements lifecycle.Component.
func (s *Server) Failed() <-chan error { return nil }
