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
	return nil
}
