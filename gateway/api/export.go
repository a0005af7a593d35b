package api

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// exportLog answers with the events of a log as a file. An event that follows while it is read is not in it.
func (a *API) exportLog(r *http.Request, who *edge.Client) (any, error) {
	log, first, last, err := a.namedLog(r, who)
	if err != nil {
		return nil, err
	}
	f, err := logFilterOf(r)
	if err != nil {
		return nil, err
	}
	until := last.Sequence
	if s := r.URL.Query().Get("until"); s != "" {
		if until, err = position(s, last.Sequence, "until"); err != nil {
			return nil, err
		}
	}
	return respond.Export{
		Media: respond.MediaLines, Name: string(log.Kind) + "-" + log.Entity.String() + ".jsonl",
		Write: func(ctx context.Context, w io.Writer) error {
			err := a.cfg.Edge.Log.Read(ctx, log, eventlog.Cursor{Seq: first.Sequence - 1}, func(e *eventlog.Entry) error {
				switch {
				case e.Sequence > until:
					return errPageFull
				case e.Type.Tombstone():
					return fault.New(fault.SessionDeleted)
				case !f.passes(e.Event):
					return nil
				}
				return writeLine(w, e)
			})
			if errors.Is(err, errPageFull) {
				return nil
			}
			return err
		},
	}, nil
}

// writeLine writes an event and the end of its line at once.
func writeLine(w io.Writer, e *eventlog.Entry) error {
	raw := shown(e)
	_, err := w.Write(append(append(make([]byte, 0, len(raw)+1), raw...), '\n'))
	return err
}
