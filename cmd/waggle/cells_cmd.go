package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/process"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/cell"
	"github.com/waggle-dev/waggle/internal/cell/move"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

type cellsCmd struct {
	List    cellsListCmd    `cmd:"" help:"List cells with their gateways, and tenants with their cells."`
	Assign  cellsAssignCmd  `cmd:"" help:"Assign a tenant to a cell, before its first message."`
	Move    cellsMoveCmd    `cmd:"" help:"Move a tenant and its data to another cell while its clients stay connected."`
	Abandon cellsAbandonCmd `cmd:"" help:"Abort an interrupted move of a tenant; its old cell serves it again."`
}

type cellsListCmd struct{ fileFlag }

// Run implements the command.
func (c *cellsListCmd) Run(std streams) error {
	return withCells(c.Config, *c, func(_ context.Context, d *cell.Directory, l *config.Loaded) error {
		for _, name := range d.Cells() {
			for _, g := range d.Gateways(name) {
				state := "live"
				if g.Draining {
					state = "draining"
				}
				if _, err := fmt.Fprintf(std.out, "gateway %s %s %s %s\n", name, g.Instance, g.URL, state); err != nil {
					return err
				}
			}
		}
		for _, a := range d.Assignments() {
			state := ""
			if a.Moving() {
				state = fmt.Sprintf(" moves to %s since %s", a.To, a.Since.Format(time.RFC3339))
			}
			if _, err := fmt.Fprintf(std.out, "tenant %s %s%s\n", a.Tenant, a.Cell, state); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(std.out, "all other tenants %s\n", l.Cells.Default)
		return err
	})
}

type cellsAssignCmd struct {
	fileFlag
	Tenant string `arg:"" help:"The tenant."`
	Cell   string `arg:"" help:"The tenant's new cell."`
}

// Run implements the command.
func (c *cellsAssignCmd) Run(std streams) error {
	tenant, err := id.ParseTenant(c.Tenant)
	if err != nil {
		return usageError{err}
	}
	to, err := id.ParseName(c.Cell)
	if err != nil {
		return usageError{err}
	}
	return withCells(c.Config, *c, func(ctx context.Context, d *cell.Directory, _ *config.Loaded) error {
		err := d.Assign(ctx, tenant, to)
		if errors.Is(err, cell.ErrAssigned) {
			return fmt.Errorf("%w: %s; use \"waggle cells move\" to change it", err, d.Place(tenant).Cell)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(std.out, "%s serves %s\n", to, tenant)
		return err
	})
}

type cellsMoveCmd struct {
	fileFlag
	Tenant  string        `arg:"" help:"The tenant."`
	To      string        `required:"" help:"YAML file, or folder of such files, with the settings of the new cell; --config is for the old one." placeholder:"FILE"`
	MaxWait time.Duration `default:"1m" help:"How long to wait for the tenant's work in progress before aborting the move."`
}

// Run implements the command.
func (c *cellsMoveCmd) Run(std streams) error {
	tenant, err := id.ParseTenant(c.Tenant)
	if err != nil {
		return usageError{err}
	}
	return withCells(c.Config, *c, func(ctx context.Context, d *cell.Directory, l *config.Loaded) error {
		aim, err := config.Load(config.Input{File: c.To})
		if err != nil {
			return usageError{err}
		}
		if err := check(aim, config.For{}); err != nil {
			return err
		}
		from, err := endOf(ctx, l.Config)
		if err != nil {
			return err
		}
		defer from.Conn.Close()
		to, err := endOf(ctx, aim.Config)
		if err != nil {
			return err
		}
		defer to.Conn.Close()
		r, err := move.Move{
			Directory: d, Tenant: tenant, From: from, To: to, MaxWait: c.MaxWait,
			Report: func(step string) { _, _ = fmt.Fprintln(std.out, step) },
		}.Run(ctx)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(std.out, "%s serves %s now: %d logs with %d events and %d objects have moved in %s\n",
			to.Name, tenant, r.Logs, r.Events, r.Objects, r.Pause.Round(time.Millisecond))
		return err
	})
}

type cellsAbandonCmd struct {
	fileFlag
	Tenant string `arg:"" help:"The tenant. --config must be the settings of its old cell."`
}

// Run implements the command.
func (c *cellsAbandonCmd) Run(std streams) error {
	tenant, err := id.ParseTenant(c.Tenant)
	if err != nil {
		return usageError{err}
	}
	return withCells(c.Config, *c, func(ctx context.Context, d *cell.Directory, l *config.Loaded) error {
		p, err := d.Look(ctx, tenant)
		if err != nil {
			return err
		}
		if !p.Moving() {
			return fmt.Errorf("%s is not being moved: the cell %s serves it", tenant, p.Cell)
		}
		if p.Cell.String() != l.Cells.Name {
			return usageError{fmt.Errorf("%s moves from the cell %s, but these settings are for %s", tenant, p.Cell, l.Cells.Name)}
		}
		old, err := endOf(ctx, l.Config)
		if err != nil {
			return err
		}
		defer old.Conn.Close()
		if err := move.Abandon(ctx, d, tenant, p, old.Conn); err != nil {
			return err
		}
		_, err = fmt.Fprintf(std.out, "%s serves %s again\n", p.Cell, tenant)
		return err
	})
}

// withCells calls f with the directory of the configuration's control cluster.
func withCells(file string, flags any, f func(context.Context, *cell.Directory, *config.Loaded) error) error {
	ctx, l, stop, err := operate(file, flags)
	if err != nil {
		return err
	}
	defer stop()
	if l.Cells.Name == "" {
		return usageError{errors.New("cells.name is not set: the installation has one cell")}
	}
	conn, err := process.ConnectControl(ctx, l.Cells, "waggle/cells", zerolog.Nop())
	if err != nil {
		return err
	}
	defer conn.Close()
	d, err := process.Cells(ctx, l.Cells, conn)
	if err != nil {
		return err
	}
	defer d.Close()
	return f(ctx, d, l)
}

// endOf connects to the cell of a configuration, with all rights.
func endOf(ctx context.Context, c config.Config) (move.Cell, error) {
	name, err := id.ParseName(c.Cells.Name)
	if err != nil {
		return move.Cell{}, fmt.Errorf("cells.name: %w", err)
	}
	var conn *bus.Conn
	if conn, err = process.ConnectFully(ctx, c, "waggle/cells", zerolog.Nop()); err != nil {
		return move.Cell{}, fmt.Errorf("the cell %s: %w", name, err)
	}
	return move.Cell{Name: name, Conn: conn}, nil
}
