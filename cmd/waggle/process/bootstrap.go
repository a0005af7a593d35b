package process

import (
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// Bootstrap creates missing streams and buckets, and repairs those that differ from the configuration. It waits within ctx
// for a cluster that is not ready, and is idempotent.
func Bootstrap(ctx context.Context, c config.Config, log zerolog.Logger) error {
	conn, err := dialAs(ctx, c, "waggle/bootstrap", permission.Bootstrap, log)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := bus.Bootstrap(ctx, conn, Topology(c)); err != nil {
		return fmt.Errorf("prepare the streams: %w", err)
	}
	if err := bus.Replace(ctx, conn); err != nil {
		return fmt.Errorf("replace the streams of an earlier version: %w", err)
	}
	return nil
}

// ChangeAudit changes the limits of the audit log to those of the configuration. It needs the key of the role retention, which
// operators keep offline.
func ChangeAudit(ctx context.Context, c config.Config, log zerolog.Logger) error {
	conn, err := dialAs(ctx, c, "waggle/retention", permission.Retention, log)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := bus.ChangeAudit(ctx, conn, Topology(c)); err != nil {
		return fmt.Errorf("change the limits of the audit log: %w", err)
	}
	return nil
}
