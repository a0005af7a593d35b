package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/waggle-dev/waggle/cmd/waggle/socket"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/sdk/go/waggle"
)

type reindexCmd struct{ gatewayFlags }

// Run implements the command.
func (c *reindexCmd) Run(std streams) error {
	ctx, stop := endable()
	defer stop()
	w, err := c.open(ctx)
	if err != nil {
		return err
	}
	var failed error
	for _, kind := range []id.Kind{id.KindSession, id.KindMember, id.KindTask} {
		err := c.reindex(ctx, std, w, kind)
		if err != nil {
			err = fmt.Errorf("%s logs: %w", kind, socket.Answered(err))
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// reindex has the entries of logs of a kind rebuilt, part by part.
func (c *reindexCmd) reindex(ctx context.Context, std streams, w *waggle.Client, kind id.Kind) error {
	for part, sum := (api.Reindexed{}), (api.Reindexed{}); ; {
		body, err := json.Marshal(api.Reindex{Kind: string(kind), After: part.Next})
		if err != nil {
			return err
		}
		raw, err := w.Call(ctx, http.MethodPost, body, "reindex")
		if err != nil {
			return err
		}
		part = api.Reindexed{}
		if err := json.Unmarshal(raw, &part); err != nil {
			return fmt.Errorf("read the answer of the gateway: %w", err)
		}
		sum.Logs, sum.Written = sum.Logs+part.Logs, sum.Written+part.Written
		to, more := std.out, ""
		if part.Next != "" {
			to, more = std.err, ", more to come"
		}
		if _, err := fmt.Fprintf(to, "%s logs: %d read, %d entries rewritten%s\n", kind, sum.Logs, sum.Written, more); err != nil || part.Next == "" {
			return err
		}
	}
}
