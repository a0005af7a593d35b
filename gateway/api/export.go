package api

import (
	"context"
	"io"
	"mime"
	"net/http"

	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// exportRoom is what the answer takes: the events that were read ahead, in each form.
const exportRoom = 2 << 20

// Export is a Handler's answer that is written while it is made: a file of JSON lines. An error cuts the connection, so that no
// client takes a part for the whole.
type Export struct {
	Name  string // of the file
	Write func(context.Context, io.Writer) error
}

// begin tells the client that a file follows.
func (e Export) begin(h http.Header) {
	h.Set("Content-Type", MediaLines)
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": e.Name}))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
}

// exportLog answers with the events of a log as a file. An event that follows while it is read is not in it.
func (a *API) exportLog(r *http.Request, p auth.Principal) (any, error) {
	log, first, last, err := a.namedLog(r, p)
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
	return Export{
		Name: string(log.Kind) + "-" + log.Entity.String() + ".jsonl",
		Write: func(ctx context.Context, w io.Writer) error {
			return a.cfg.Log.Read(ctx, log, eventlog.Cursor{Seq: first.Sequence - 1}, func(e *eventlog.Entry) error {
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
		},
	}, nil
}

// writeLine writes an event and the end of its line at once.
func writeLine(w io.Writer, e *eventlog.Entry) error {
	_, err := w.Write(append(append(make([]byte, 0, len(e.Raw)+1), e.Raw...), '\n'))
	return err
}

