package session

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/rpc"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// maxImport bounds the body of an import: as large as a client's frame may be, which
// brings the same states.
const maxImport = 256 << 10

// cancel stops the run that is on.
func (a *API) cancel(r *http.Request, p auth.Principal) (any, error) {
	log, err := a.sessionLog(r, p)
	if err != nil {
		return nil, err
	}
	if err := a.exists(r.Context(), log); err != nil {
		return nil, err
	}
	c := cmd.Command{
		ID: uuid.NewString(), Service: cmd.Pipeline, Verb: cmd.Cancel, Tenant: log.Tenant, Key: log.Entity,
		Principal: p.Subject, Source: "waggle/api", Time: time.Now(), Data: json.RawMessage(`{}`),
	}
	if err := a.commands.Send(r.Context(), c); err != nil {
		return nil, err
	}
	return map[string]any{"accepted": true, "command_id": c.ID}, nil
}

// state exports a session.
func (a *API) state(r *http.Request, p auth.Principal) (any, error) {
	log, err := a.sessionLog(r, p)
	if err != nil {
		return nil, err
	}
	if err := a.exists(r.Context(), log); err != nil {
		return nil, err
	}
	in := cmd.ExportRequest{Tenant: log.Tenant, Session: log.Entity, Principal: p.Subject}
	if in.History, in.MaxHistory, err = historyOf(r); err != nil {
		return nil, err
	}
	var out event.StateExportedData
	if err := rpc.Call(r.Context(), a.conn, cmd.Session, cmd.Export, in, &out); err != nil {
		return nil, err
	}
	return out, nil
}

func historyOf(r *http.Request) (with bool, limit int, err error) {
	q := r.URL.Query()
	if s := q.Get("history"); s != "" {
		if with, err = strconv.ParseBool(s); err != nil {
			return false, 0, fault.Newf(fault.InvalidField, "history must be true or false.").At("history")
		}
	}
	if s := q.Get("max_history"); s != "" {
		if limit, err = strconv.Atoi(s); err != nil || limit < 1 || limit > maxHistory {
			return false, 0, fault.Newf(fault.InvalidField, "max_history must be a number from 1 to %d.", maxHistory).At("max_history")
		}
	}
	return with, limit, nil
}

// restore imports the signed state in the body: the member signed of an exported one.
func (a *API) restore(r *http.Request, p auth.Principal) (any, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxImport))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, fault.Newf(fault.MessageTooBig, "A signed state has at most %d bytes.", maxImport)
	}
	if err != nil {
		return nil, fault.New(fault.BadJSON).Wrap(err)
	}
	if !json.Valid(body) {
		return nil, fault.New(fault.BadJSON)
	}
	var out cmd.ImportReply
	in := cmd.ImportRequest{Tenant: p.Tenant, Principal: p.Subject, Signed: body}
	if err := rpc.Call(r.Context(), a.conn, cmd.Session, cmd.Import, in, &out); err != nil {
		return nil, err
	}
	out.Exported = nil // of what the caller has sent
	return out, nil
}
