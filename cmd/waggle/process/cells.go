package process

import (
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/cell"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// ConnectControl connects to the control cluster of the configuration.
func ConnectControl(ctx context.Context, c config.Cells, name string, log zerolog.Logger) (*bus.Conn, error) {
	conn, err := bus.Connect(ctx, bus.Config{
		URL: c.Control, Name: name, Creds: c.Creds, NKeySeedFile: c.NKey, TLSCA: c.TLSCA, TLSCert: c.TLSCert, TLSKey: c.TLSKey, Logger: log,
	})
	if err != nil {
		return nil, fmt.Errorf("the control cluster at %s (cells.control) cannot be reached: %w", config.RedactURLs(c.Control), err)
	}
	return conn, nil
}

// Cells opens the directory of cells over a connection to the control cluster.
func Cells(ctx context.Context, c config.Cells, conn *bus.Conn) (*cell.Directory, error) {
	usual, err := id.ParseName(c.Default)
	if err != nil {
		return nil, fmt.Errorf("cells.default: %w", err)
	}
	return cell.Open(ctx, conn, usual)
}

// cells returns the place of the gateway among several cells; nil in an installation of one.
func (p *process) cells(ctx context.Context) (*gateway.Cells, error) {
	c := p.Config.Cells
	if c.Name == "" {
		return nil, nil
	}
	name, err := id.ParseName(c.Name)
	if err != nil {
		return nil, fmt.Errorf("cells.name: %w", err)
	}
	conn, err := ConnectControl(ctx, c, "waggle/gateway", p.Logger)
	if err != nil {
		return nil, err
	}
	p.closers = append(p.closers, conn.Close)
	d, err := Cells(ctx, c, conn)
	if err != nil {
		return nil, err
	}
	p.closers = append(p.closers, d.Close)
	return &gateway.Cells{Directory: d, Name: name, URL: c.Address}, nil
}
