package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/api/request"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/eventlog"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// defaultEvents and maxEvents bound the events of one answer, beside answer.MaxPage.
	defaultEvents = 500
	maxEvents     = 1000
	// maxHistory bounds the events of an exported state.
	maxHistory = 1000
	// maxImport bounds the body of an import: as large as a client's frame may be, which brings the same states.
	maxImport = 256 << 10
)

const (
	// deletePatience bounds the wait for the end of a deletion: longer than the election after a lost leader, shorter
	// than the patience of clients and proxies.
	deletePatience = 10 * time.Second
	// deletePause is the first pause between two looks, doubled up to deletePauseMax: a deletion takes some milliseconds.
	deletePause    = 5 * time.Millisecond
	deletePauseMax = 250 * time.Millisecond
)

// errPageFull ends a read at the limit of the page.
var errPageFull = errors.New("page full")

func (a *API) showSession(r *http.Request, who *edge.Client) (any, error) {
	p := who.Principal()
	log, err := a.sessionLog(r, who)
	if err != nil {
		return nil, err
	}
	d := wire.SessionDetail{Runs: []wire.RunDetail{}}
	for cut := false; ; {
		in := cmd.SessionRequest{Tenant: log.Tenant, Session: log.Entity, Principal: p.Subject, All: who.SeesAll(), Skip: len(d.Runs)}
		if cut {
			in.Skip, in.Steps = in.Skip-1, len(d.Runs[in.Skip-1].Steps)
		}
		part, err := ask[wire.SessionPart](r, who, cmd.Session, cmd.ShowSession, in)
		if err != nil {
			return nil, err
		}
		d.Take(part, cut)
		if cut = part.Cut; !part.More || len(part.Runs) == 0 {
			return d, nil
		}
	}
}

func (a *API) sessionEvents(r *http.Request, who *edge.Client) (any, error) {
	log, err := a.sessionLog(r, who)
	if err != nil {
		return nil, err
	}
	limit, err := request.Number(r, "limit", defaultEvents, maxEvents)
	if err != nil {
		return nil, err
	}
	var after eventlog.Cursor
	if s := r.URL.Query().Get("after"); s != "" {
		if after, err = eventlog.ParseCursor(s); err != nil {
			return nil, fault.New(fault.CursorInvalid).At("after").Wrap(err)
		}
	}
	page, next, room := wire.EventPage{Events: []json.RawMessage{}}, after, answer.MaxPage
	err = a.cfg.Edge.Log.Read(r.Context(), log, after, func(e *eventlog.Entry) error {
		raw := shown(e)
		if room -= len(raw) + 1; len(page.Events) == limit || room < 0 && len(page.Events) > 0 {
			page.More = true
			return errPageFull
		}
		page.Events, next = append(page.Events, raw), e.Cursor()
		return nil
	})
	if err = a.pageError(r, log, after, err); err != nil {
		return nil, err
	}
	if len(page.Events) == 0 {
		if err := a.exists(r, log); err != nil {
			return nil, err
		}
	}
	page.Next = next.String()
	return page, nil
}

// pageError returns what a client may learn of the failed read of a page, nil if the page is complete.
func (a *API) pageError(r *http.Request, log subject.Log, after eventlog.Cursor, err error) error {
	var cut *eventlog.TruncatedError
	switch {
	case errors.As(err, &cut):
		return fault.Newf(fault.HeadExpired, "History before seq %d has expired. Try again with after=%d.", cut.First, cut.First-1)
	case errors.Is(err, eventlog.ErrBeyondEnd) && after.Seq > 0:
		if err := a.exists(r, log); err != nil {
			return err
		}
		return fault.New(fault.CursorInvalid).At("after")
	case errors.Is(err, errPageFull):
		return nil
	}
	return err
}

// cancelSession stops the active run.
func (a *API) cancelSession(r *http.Request, who *edge.Client) (any, error) {
	log, err := a.existing(r, who)
	if err != nil {
		return nil, err
	}
	return send(r, who, cmd.Command{Service: cmd.Pipeline, Verb: cmd.Cancel, Key: log.Entity}, struct{}{})
}

// closeSession ends a session for good. Its log stays.
func (a *API) closeSession(r *http.Request, who *edge.Client) (any, error) {
	log, err := a.existing(r, who)
	if err != nil {
		return nil, err
	}
	return send(r, who, cmd.Command{Service: cmd.Session, Verb: cmd.Close, Key: log.Entity}, cmd.CloseSession{Reason: "user_request"})
}

func (a *API) exportSession(r *http.Request, who *edge.Client) (any, error) {
	p := who.Principal()
	log, err := a.existing(r, who)
	if err != nil {
		return nil, err
	}
	in := cmd.ExportRequest{Tenant: log.Tenant, Session: log.Entity, Principal: p.Subject, All: who.SeesAll()}
	if s := r.URL.Query().Get("history"); s != "" {
		if in.History, err = strconv.ParseBool(s); err != nil {
			return nil, fault.Newf(fault.InvalidField, "history must be true or false.").At("history")
		}
	}
	if in.MaxHistory, err = request.Number(r, "max_history", 0, maxHistory); err != nil {
		return nil, err
	}
	return ask[event.StateExportedData](r, who, cmd.Session, cmd.Export, in)
}

// importSession imports the signed state in the body: the member signed of an exported one.
func (a *API) importSession(r *http.Request, who *edge.Client) (any, error) {
	p := who.Principal()
	signed, err := request.Body(r, maxImport)
	if errors.Is(err, fault.New(fault.MessageTooBig)) {
		return nil, fault.Newf(fault.MessageTooBig, "A signed state must be at most %d bytes.", maxImport)
	}
	if err != nil {
		return nil, err
	}
	if !json.Valid(signed) {
		return nil, fault.New(fault.BadJSON)
	}
	in := cmd.ImportRequest{Tenant: p.Tenant, Principal: p.Subject, All: p.Has(auth.RoleOperator), Signed: signed}
	if err := a.cfg.Edge.Signer.Import(&in); err != nil {
		return nil, err
	}
	out, err := change[cmd.ImportReply](r, who, cmd.Session, cmd.Import, in)
	out.Exported = nil // of what the caller has sent
	return out, err
}

// deleteSession removes a session. The answer is 204 once all of it is gone, and 202 if that takes longer than a client
// should wait: then the command is stored and survives any crash. A repeat has the same answer as long as the tombstone
// is kept.
func (a *API) deleteSession(r *http.Request, who *edge.Client) (any, error) {
	log, err := a.existing(r, who)
	if errors.Is(err, eventlog.ErrDeleted) {
		log, err = a.sessionLog(r, who)
	}
	if err != nil {
		return nil, err
	}
	if erased, err := a.cfg.Edge.Log.Erased(r.Context(), log); err != nil || erased {
		return respond.NoContent{}, err
	}
	out, err := send(r, who, cmd.Command{Service: cmd.Session, Verb: cmd.Delete, Key: log.Entity}, nil)
	switch {
	case err != nil:
		return nil, err
	case a.awaitErased(r.Context(), log):
		return respond.NoContent{}, nil
	}
	return respond.Accepted{Answer: out}, nil
}

// awaitErased reports whether the log is erased within deletePatience.
func (a *API) awaitErased(ctx context.Context, log subject.Log) bool {
	ctx, cancel := context.WithTimeout(ctx, deletePatience)
	defer cancel()
	for pause := deletePause; ; pause = min(2*pause, deletePauseMax) {
		if erased, err := a.cfg.Edge.Log.Erased(ctx, log); err == nil && erased {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}

// existing returns the log that the request names, which has events.
func (a *API) existing(r *http.Request, who *edge.Client) (subject.Log, error) {
	log, err := a.sessionLog(r, who)
	if err == nil {
		err = a.exists(r, log)
	}
	return log, err
}

// exists returns SESSION_NOT_FOUND for a log without events.
func (a *API) exists(r *http.Request, log subject.Log) error {
	last, err := a.cfg.Edge.Log.Last(r.Context(), log)
	if err == nil && last.Seq == 0 {
		return fault.New(fault.SessionNotFound)
	}
	return err
}

// sessionLog returns the log that the request names, if the principal sees it. Another one does not exist.
func (a *API) sessionLog(r *http.Request, who *edge.Client) (subject.Log, error) {
	entity, err := id.ParseEntity(r.PathValue("id"))
	if err != nil {
		return subject.Log{}, fault.New(fault.SessionNotFound).Wrap(err)
	}
	log, err := owned(who, id.KindSession, entity)
	if err != nil {
		return log, err
	}
	return log, who.Sees(r.Context(), log, fault.New(fault.SessionNotFound))
}
