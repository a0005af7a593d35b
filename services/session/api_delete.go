package session

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/waggle-dev/waggle/internal/api"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/eventlog"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// deletePatience is how long a request waits for its session to be gone: longer than
	// the election after a lost leader, shorter than the patience of clients and proxies.
	deletePatience = 10 * time.Second
	// deletePause is the first pause between two looks, doubled up to deletePauseMax: a
	// deletion takes some milliseconds.
	deletePause    = 5 * time.Millisecond
	deletePauseMax = 250 * time.Millisecond
)

// delete removes a session. The answer is 204 once nothing of it is left, and 202 if that
// takes longer than a client should wait: the command is stored then, and survives any
// crash. Deleting it again has the same answer, as long as its tombstone is kept.
func (a *API) delete(r *http.Request, p auth.Principal) (any, error) {
	log, err := a.sessionLog(r, p)
	if err != nil {
		return nil, err
	}
	if err := a.exists(r.Context(), log); err != nil && !errors.Is(err, eventlog.ErrDeleted) {
		return nil, err
	}
	if erased, err := a.log.Erased(r.Context(), log); err != nil || erased {
		return api.NoContent{}, err
	}
	c := cmd.Command{
		ID: uuid.NewString(), Service: cmd.Session, Verb: cmd.Delete, Tenant: log.Tenant, Key: log.Entity,
		Principal: p.Subject, Source: "waggle/api", Time: time.Now(),
	}
	if err := a.commands.Send(r.Context(), c); err != nil {
		return nil, err
	}
	if a.awaitErased(r.Context(), log) {
		return api.NoContent{}, nil
	}
	return api.Accepted{Answer: map[string]any{"accepted": true, "command_id": c.ID}}, nil
}

// awaitErased reports whether nothing of the log is left within deletePatience.
func (a *API) awaitErased(ctx context.Context, log subject.Log) bool {
	ctx, cancel := context.WithTimeout(ctx, deletePatience)
	defer cancel()
	for pause := deletePause; ; pause = min(2*pause, deletePauseMax) {
		if erased, err := a.log.Erased(ctx, log); err == nil && erased {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}
