package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/api/openapi"
	"github.com/waggle-dev/waggle/gateway/api/request"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/eventlog"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// sessions are conversations. Messages to them are in messages, and the steps of their runs in plans.
type sessions struct{ *parts }

const (
	// maxHistory bounds the events of an exported state.
	maxHistory = 1000
	// maxSessionID bounds the ids that clients choose, in bytes.
	maxSessionID = 1024
	// maxImport bounds the body of an import: as large as a client's frame may be, which brings the same states.
	maxImport = 256 << 10
)

const (
	// deleteMaxWait bounds the wait for the end of a deletion: longer than the election after a lost leader, shorter
	// than clients and proxies wait.
	deleteMaxWait = 10 * time.Second
	// deletePause is the first pause between two looks, doubled up to deletePauseMax: a deletion takes some milliseconds.
	deletePause    = 5 * time.Millisecond
	deletePauseMax = 250 * time.Millisecond
)

// history is the number of events of an exported state. The service knows the default.
var history = count{Parameter: openapi.Parameter{Name: "max_history", About: "Number of events; 100 by default.", Type: "integer", Maximum: maxHistory}}

// signedState is the body of an import: any object, which only the session service can read.
type signedState map[string]any

// routes are those of sessions and of their files.
func (s sessions) routes() []Route {
	known := []fault.Code{fault.SessionNotFound, fault.SessionDeleted}
	with := func(more ...fault.Code) []fault.Code { return append(more, known...) }
	return append(s.lists(with), []Route{
		{
			Method: "POST", Path: "/sessions", ID: "nameSession", Tag: "sessions", Summary: "Create a session under an id of your own, or name a new one, which its first message creates.",
			Body: wire.NewSession{}, Example: `{"session_id":"ticket-4711","confirm_plan":true,"language":"en"}`,
			Answers: []openapi.Answer{{
				Status: http.StatusCreated, Type: wire.SessionName{},
				About: "The id of the session. Location is its path. A repeat with the same session_id has the same response; with other preferences it is refused.",
			}},
			Faults:  []fault.Code{fault.BadJSON, fault.InvalidField, fault.MessageTooBig, fault.SessionExists, fault.SessionDeleted, fault.QuotaExceeded, fault.Draining},
			Handler: s.server.Serve(s.name),
		},
		{
			Method: "GET", Path: "/sessions/{id}", ID: "showSession", Tag: "sessions", Summary: "Show a session and its runs.",
			Answers: json200("The session.", wire.SessionDetail{}), Faults: with(fault.MessageTooBig, fault.HeadExpired), Handler: s.server.Serve(s.show),
		},
		{
			Method: "DELETE", Path: "/sessions/{id}", ID: "deleteSession", Tag: "sessions", Summary: "Delete a session with its log for good.",
			Answers: []openapi.Answer{
				{Status: http.StatusNoContent, About: "The session is deleted."},
				{Status: http.StatusAccepted, About: "The session will be deleted.", Type: wire.Accepted{}},
			},
			Faults: with(), Handler: s.server.Serve(s.delete),
		},
		{
			Method: "GET", Path: "/sessions/{id}/events", ID: "listSessionEvents", Tag: "sessions", Summary: "Read a page of a session's log.",
			Query:   []openapi.Parameter{{Name: "after", About: "Position: the page begins with the next event.", Type: "string"}, eventLimit.Parameter},
			Answers: json200("The events.", wire.EventPage{}), Faults: with(fault.InvalidField, fault.CursorInvalid, fault.HeadExpired),
			Handler: s.server.ServePage(s.events),
		},
		s.files(with),
		{
			Method: "GET", Path: "/sessions/{id}/state", ID: "exportSession", Tag: "sessions", Summary: "Export the signed state of a session.",
			Query:   []openapi.Parameter{{Name: "history", About: "With the newest events.", Type: "boolean"}, history.Parameter},
			Answers: json200("The state.", event.StateExportedData{}), Faults: with(fault.InvalidField, fault.MessageTooBig, fault.HeadExpired),
			Handler: s.server.Serve(s.exportState),
		},
		{
			Method: "POST", Path: "/sessions/import", ID: "importSession", Tag: "sessions", Summary: "Restore a session from the signed state of an export.",
			Body: signedState{}, Required: true, Example: `{"signed":"the answer of exportSession"}`, Answers: json200("The session.", cmd.ImportReply{}),
			Faults:  []fault.Code{fault.BadJSON, fault.MessageTooBig, fault.StateTampered, fault.StateExpired, fault.SessionDeleted, fault.QuotaExceeded},
			Handler: s.server.Serve(s.importState),
		},
		{
			Method: "POST", Path: "/sessions/{id}/cancel", ID: "cancelSession", Tag: "sessions", Summary: "Cancel a run of a session: the active one, or that with an id.",
			Body: wire.CancelSession{}, Example: `{"reason":"not needed any more"}`, Answers: accepted(),
			Faults: with(fault.BadJSON, fault.MessageTooBig), Handler: s.server.Serve(s.cancel),
		},
		{
			Method: "POST", Path: "/sessions/{id}/close", ID: "closeSession", Tag: "sessions", Summary: "Close a session: it takes no message any more, and its log stays.",
			Answers: accepted(), Faults: with(), Handler: s.server.Serve(s.close),
		},
	}...)
}

func (s sessions) files(with func(...fault.Code) []fault.Code) Route {
	return Route{
		Method: "GET", Path: "/sessions/{id}/files/{digest}", ID: "showSessionFile", Tag: "sessions", Summary: "Fetch a file that a message of a session has brought along.",
		Answers: []openapi.Answer{{
			Status: http.StatusOK, Media: respond.MediaBytes, Images: event.Pictures(),
			About: "The file, as its contents are: a PNG, JPEG, GIF or WebP image with that media type, any other file, also a text, as application/octet-stream.",
		}},
		Faults: with(fault.NotFound, fault.PayloadLost), Handler: s.server.Serve(s.file),
	}
}

// name answers with the id of a new session, or of the one that the client has named itself.
func (s sessions) name(r *http.Request, who *edge.Client) (any, error) {
	var b wire.NewSession
	if err := request.Decode(r, maxAction, &b, false); err != nil {
		return nil, err
	}
	if err := checkBusy(b.OnBusy); err != nil {
		return nil, err
	}
	wishes := event.Preferences{Language: b.Language, ConfirmPlan: b.ConfirmPlan, OnBusy: b.OnBusy}
	if b.SessionID != "" {
		log, err := s.mine(r, who, b.SessionID)
		if err == nil {
			err = s.create(r, who, log, wishes)
		}
		if err != nil {
			return nil, err
		}
		return created(log.Entity), nil
	}
	session, err := edge.NameSession(who.Principal(), wishes)
	if err != nil {
		return nil, err
	}
	return created(session), nil
}

func created(session id.Entity) respond.Created {
	return respond.Created{Location: Prefix + "/sessions/" + session.String(), Answer: wire.SessionName{SessionID: session.String()}}
}

// mine returns the log of the session of an id that the client has chosen. It may have no events.
func (s sessions) mine(r *http.Request, who *edge.Client, name string) (subject.Log, error) {
	if len(name) > maxSessionID {
		return subject.Log{}, fault.Newf(fault.InvalidField, "The id of a session must have at most %d bytes.", maxSessionID).At("session_id")
	}
	log, err := owned(who, id.KindSession, sessionOf(name))
	if err != nil {
		return log, err
	}
	return log, who.Sees(r.Context(), log, fault.New(fault.SessionExists).At("session_id"))
}

// sessionOf returns the session with an id. A token stands for an id with other characters, as in AG-UI.
func sessionOf(name string) id.Entity {
	if entity, err := id.ParseEntity(name); err == nil {
		return entity
	}
	return id.EntityFromExternal(name)
}

// create makes the session of a log that has no events. One that exists stays as it is, and has the preferences that are asked for.
func (s sessions) create(r *http.Request, who *edge.Client, log subject.Log, wishes event.Preferences) error {
	last, err := s.edge.Log.Last(r.Context(), log)
	if err != nil {
		return err
	}
	if last.Seq == 0 {
		// A session is made for its messages: who may not send any may not make it.
		if err := who.Create(r.Context(), log, wishes, cmd.Command{Service: cmd.Pipeline, Verb: cmd.SendMessage, Tenant: log.Tenant, Key: log.Entity}); err != nil {
			return err
		}
	}
	var first event.SessionCreatedData
	_, err = stream.ReadLeft(r.Context(), s.edge.Log, log, eventlog.Cursor{}, stream.ToEnd, func(e *eventlog.Entry) (err error) {
		if e.Type != event.SessionCreated { // it has expired, or the session was restored
			return stream.ErrEnough
		}
		if first, err = event.As[event.SessionCreatedData](e.Event); err != nil {
			return err
		}
		return stream.ErrEnough
	})
	if err == nil && first.Dialect != "" && differ(first.Preferences, wishes) {
		err = fault.Newf(fault.SessionExists, "This session exists with other preferences. Use another id, or the same preferences.").At("session_id")
	}
	return err
}

// differ reports whether a session has other preferences than the ones that are asked for.
func differ(has, wishes event.Preferences) bool {
	return wishes.Language != "" && wishes.Language != has.Language ||
		wishes.ConfirmPlan != nil && (has.ConfirmPlan == nil || *wishes.ConfirmPlan != *has.ConfirmPlan) ||
		wishes.OnBusy != "" && wishes.OnBusy != has.OnBusy
}

func (s sessions) show(r *http.Request, who *edge.Client) (any, error) {
	p := who.Principal()
	log, err := s.log(r, who)
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

// delete removes a session. The answer is 204 once all of it is gone, and 202 if that takes longer than a client should wait: then
// the command is stored and survives any crash. A repeat has the same answer as long as the tombstone is kept.
func (s sessions) delete(r *http.Request, who *edge.Client) (any, error) {
	log, err := s.existing(r, who)
	if errors.Is(err, eventlog.ErrDeleted) {
		log, err = s.log(r, who)
	}
	if err != nil {
		return nil, err
	}
	if erased, err := s.edge.Log.Erased(r.Context(), log); err != nil || erased {
		return respond.NoContent{}, err
	}
	out, err := send(r, who, cmd.Command{Service: cmd.Session, Verb: cmd.Delete, Key: log.Entity}, nil)
	switch {
	case err != nil:
		return nil, err
	case s.awaitErased(r.Context(), log):
		return respond.NoContent{}, nil
	}
	return respond.Accepted{Answer: out}, nil
}

// awaitErased reports whether the log is erased within deleteMaxWait.
func (s sessions) awaitErased(ctx context.Context, log subject.Log) bool {
	ctx, cancel := context.WithTimeout(ctx, deleteMaxWait)
	defer cancel()
	for pause := deletePause; ; pause = min(2*pause, deletePauseMax) {
		if erased, err := s.edge.Log.Erased(ctx, log); err == nil && erased {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}

func (s sessions) events(r *http.Request, who *edge.Client) (any, error) {
	log, err := s.log(r, who)
	if err != nil {
		return nil, err
	}
	q := queryOf(r)
	limit := q.count(eventLimit)
	if q.err != nil {
		return nil, q.err
	}
	var after eventlog.Cursor
	if given := q.Get("after"); given != "" {
		if after, err = eventlog.ParseCursor(given); err != nil {
			return nil, fault.New(fault.CursorInvalid).At("after").Wrap(err)
		}
	}
	page, next, room := wire.EventPage{Events: []json.RawMessage{}}, after, answer.MaxPage
	err = stream.Read(r.Context(), s.edge.Log, log, after, stream.ToEnd, func(e *eventlog.Entry) error {
		raw := shown(e)
		if room -= len(raw) + 1; len(page.Events) == limit || room < 0 && len(page.Events) > 0 {
			page.More = true
			return stream.ErrEnough
		}
		page.Events, next = append(page.Events, raw), e.Cursor()
		return nil
	})
	if err = s.pageError(r, log, after, err); err != nil {
		return nil, err
	}
	if len(page.Events) == 0 {
		if err := s.exists(r, log); err != nil {
			return nil, err
		}
	}
	page.Next = next.String()
	return page, nil
}

// pageError returns what a client may learn of the failed read of a page, nil if the page is complete.
func (s sessions) pageError(r *http.Request, log subject.Log, after eventlog.Cursor, err error) error {
	var cut *eventlog.TruncatedError
	switch {
	case errors.As(err, &cut):
		return fault.Newf(fault.HeadExpired, "History before seq %d has expired. Try again with after=%d.", cut.First, cut.First-1)
	case errors.Is(err, eventlog.ErrBeyondEnd) && after.Seq > 0:
		if err := s.exists(r, log); err != nil {
			return err
		}
		return fault.New(fault.CursorInvalid).At("after")
	}
	return err
}

// file returns a file of the session. Its address names its contents, whose type is read from them: what a client says of it would
// have a browser run it.
func (s sessions) file(r *http.Request, who *edge.Client) (any, error) {
	log, err := s.existing(r, who)
	if err != nil {
		return nil, err
	}
	stored, err := s.payloads.Find(r.Context(), log, r.PathValue("digest"))
	if errors.Is(err, fault.New(fault.PayloadLost)) {
		return nil, fault.Newf(fault.NotFound, "This file does not exist in the session, or has expired.").Wrap(err)
	}
	if err != nil {
		return nil, err
	}
	var text string
	if err := json.Unmarshal(stored, &text); err != nil {
		return nil, fault.New(fault.NotFound).Wrap(err) // an object of another kind
	}
	body, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fault.New(fault.NotFound).Wrap(err)
	}
	out := respond.Bytes{Body: body}
	if media := http.DetectContentType(body); (event.File{MediaType: media}).Picture() {
		out.Media = media
	}
	return out, nil
}

func (s sessions) exportState(r *http.Request, who *edge.Client) (any, error) {
	p := who.Principal()
	log, err := s.existing(r, who)
	if err != nil {
		return nil, err
	}
	q := queryOf(r)
	in := cmd.ExportRequest{Tenant: log.Tenant, Session: log.Entity, Principal: p.Subject, All: who.SeesAll()}
	if with := q.Get("history"); with != "" {
		if in.History, err = strconv.ParseBool(with); err != nil {
			return nil, fault.Newf(fault.InvalidField, "history must be true or false.").At("history")
		}
	}
	if in.MaxHistory = q.count(history); q.err != nil {
		return nil, q.err
	}
	return ask[event.StateExportedData](r, who, cmd.Session, cmd.Export, in)
}

// importState imports the signed state in the body: the member signed of an exported one.
func (s sessions) importState(r *http.Request, who *edge.Client) (any, error) {
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
	if err := s.edge.Signer.Import(&in); err != nil {
		return nil, err
	}
	out, err := change[cmd.ImportReply](r, who, cmd.Session, cmd.Import, in)
	out.Exported = nil // of what the caller has sent
	return out, err
}

// cancel stops the active run, or the one that the body names.
func (s sessions) cancel(r *http.Request, who *edge.Client) (any, error) {
	log, err := s.existing(r, who)
	if err != nil {
		return nil, err
	}
	var b wire.CancelSession
	if err := request.Decode(r, maxAction, &b, false); err != nil {
		return nil, err
	}
	return send(r, who, cmd.Command{Service: cmd.Pipeline, Verb: cmd.Cancel, Key: log.Entity}, cmd.CancelRun{RunID: b.RunID, Reason: b.Reason})
}

// close ends a session for good. Its log stays.
func (s sessions) close(r *http.Request, who *edge.Client) (any, error) {
	log, err := s.existing(r, who)
	if err != nil {
		return nil, err
	}
	return send(r, who, cmd.Command{Service: cmd.Session, Verb: cmd.Close, Key: log.Entity}, cmd.CloseSession{Reason: "user_request"})
}

// existing returns the log that the request names, which has events.
func (s sessions) existing(r *http.Request, who *edge.Client) (subject.Log, error) {
	log, err := s.log(r, who)
	if err == nil {
		err = s.exists(r, log)
	}
	return log, err
}

// exists returns SESSION_NOT_FOUND for a log without events.
func (s sessions) exists(r *http.Request, log subject.Log) error {
	last, err := s.edge.Log.Last(r.Context(), log)
	if err == nil && last.Seq == 0 {
		return fault.New(fault.SessionNotFound)
	}
	return err
}

// log returns the log that the request names, if the principal sees it. Another one does not exist.
func (s sessions) log(r *http.Request, who *edge.Client) (subject.Log, error) {
	log, err := owned(who, id.KindSession, sessionOf(r.PathValue("id")))
	if err != nil {
		return log, err
	}
	return log, who.Sees(r.Context(), log, fault.New(fault.SessionNotFound))
}
