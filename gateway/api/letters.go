package api

import (
	"net/http"
	"strconv"
	"sync"

	"github.com/waggle-dev/waggle/gateway/api/openapi"
	"github.com/waggle-dev/waggle/gateway/api/request"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/letters"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

const (
	// defaultLetters and maxLetters bound the dead letters of one page, some 3 KB each. To list them the service reads their
	// commands, too, of at most 256 KiB.
	defaultLetters = 50
	maxLetters     = 100
)

// operating makes a Handler for operators alone a handler of requests.
func operating(h func(*API, *http.Request, *edge.Client) (any, error)) func(*API) http.HandlerFunc {
	return authenticated(func(a *API, r *http.Request, who *edge.Client) (any, error) {
		if !who.Principal().Has(auth.RoleOperator) {
			return nil, fault.Newf(fault.Forbidden, "Only principals with the role operator may do this.")
		}
		return h(a, r, who)
	})
}

// pageRequest returns the page that the request asks for.
func pageRequest(r *http.Request, who *edge.Client, otherwise, limit int) (in cmd.PageRequest, err error) {
	p := who.Principal()
	in.Tenant = p.Tenant
	if in.Limit, err = request.Number(r, "limit", otherwise, limit); err == nil {
		in.Before, err = placeOf(r)
	}
	return in, err
}

// listLetters answers with a page of the dead letters of the tenant.
func (a *API) listLetters(r *http.Request, who *edge.Client) (any, error) {
	in, err := pageRequest(r, who, defaultLetters, maxLetters)
	if err != nil {
		return nil, err
	}
	return ask[wire.DeadLetterList](r, who, cmd.Installation, cmd.ListLetters, in)
}

// showLetter answers with a dead letter and its command.
func (a *API) showLetter(r *http.Request, who *edge.Client) (any, error) {
	_, l, err := a.letter(r, who)
	if err != nil {
		return nil, err
	}
	return l.Detail()
}

// resendLetter has the service of a dead letter queue its command again, and discards the letter. After a failure between
// the two the letter stays, and a repeat queues nothing twice.
func (a *API) resendLetter(r *http.Request, who *edge.Client) (any, error) {
	at, l, err := a.letter(r, who)
	if err != nil {
		return nil, err
	}
	c, err := l.Renewed()
	if err != nil {
		return nil, err
	}
	if clientsSend().MayPublish(subject.CommandsOf(c.Service, c.Verb)) {
		err = a.sendAgain(r, c)
	} else {
		_, err = change[cmd.ResendReply](r, who, cmd.Letters, c.Service, at)
	}
	if err != nil {
		return nil, err
	}
	if err := discard(r, who, at); err != nil && !gone(err) {
		return nil, err
	}
	return respond.Accepted{Answer: wire.Accepted{Accepted: true, CommandID: c.ID}}, nil
}

// clientsSend returns what the gateway may send: the commands of clients. Services send all others, and send these again.
var clientsSend = sync.OnceValue(func() permission.List {
	l, _ := permission.Of(permission.Gateway, subject.DefaultPartitions) // it names no partition of commands
	return l
})

// sendAgain sends a command as it is. One of a person gets a new signature in place of one that is too old.
func (a *API) sendAgain(r *http.Request, c cmd.Command) error {
	if err := a.cfg.Edge.Signer.Renew(a.cfg.Signatures, &c); err != nil {
		return err
	}
	return a.again.Send(r.Context(), c)
}

// discardLetter removes a dead letter for good.
func (a *API) discardLetter(r *http.Request, who *edge.Client) (any, error) {
	at, err := letterRef(r, who)
	if err != nil {
		return nil, err
	}
	return respond.NoContent{}, discard(r, who, at)
}

func discard(r *http.Request, who *edge.Client, at cmd.LetterRequest) error {
	_, err := change[struct{}](r, who, cmd.Installation, cmd.DiscardLetter, at)
	return err
}

// gone reports whether the error says that a letter does not exist: another request has dealt with it.
func gone(err error) bool { return fault.From(err, "").Code == fault.NotFound }

// letter returns the dead letter that the request names.
func (a *API) letter(r *http.Request, who *edge.Client) (at cmd.LetterRequest, l letters.Letter, err error) {
	if at, err = letterRef(r, who); err == nil {
		l, err = ask[letters.Letter](r, who, cmd.Installation, cmd.ShowLetter, at)
	}
	return at, l, err
}

func letterRef(r *http.Request, who *edge.Client) (cmd.LetterRequest, error) {
	p := who.Principal()
	seq, err := strconv.ParseUint(r.PathValue("seq"), 10, 64)
	if err != nil {
		return cmd.LetterRequest{}, fault.Newf(fault.NotFound, "This dead letter does not exist. Use the seq of one in the list.").Wrap(err)
	}
	return cmd.LetterRequest{Tenant: p.Tenant, Sequence: seq}, nil
}

// deadLetterRoutes are for operators.
func deadLetterRoutes() []Route {
	page := func(what string, limit int) []openapi.Parameter {
		return []openapi.Parameter{pageQuery[0], {Name: "limit", About: what, Type: "integer", Maximum: limit}}
	}
	known := []fault.Code{fault.NotFound}
	return []Route{
		{
			Method: "GET", Path: "/dead-letters", ID: "listDeadLetters", Tag: "installation", Summary: "List the commands of the tenant that services have given up, the newest first. For operators.",
			Query: page("Dead letters of the page; 50 by default.", maxLetters), Answers: json200("A page of dead letters.", wire.DeadLetterList{}),
			Faults: []fault.Code{fault.InvalidField}, Handler: operating((*API).listLetters),
		},
		{
			Method: "GET", Path: "/dead-letters/{seq}", ID: "showDeadLetter", Tag: "installation", Summary: "Show a dead letter with its command. For operators.",
			Answers: json200("The dead letter.", wire.DeadLetterDetail{}), Faults: append([]fault.Code{fault.MessageTooBig}, known...), Handler: operating((*API).showLetter),
		},
		{
			Method: "POST", Path: "/dead-letters/{seq}/resend", ID: "resendDeadLetter", Tag: "installation",
			Summary: "Send the command of a dead letter again, and remove the dead letter. For operators.",
			Answers: []openapi.Answer{{Status: http.StatusAccepted, About: "The command is queued. Its service handles it once, however often it is sent.", Type: wire.Accepted{}}},
			Faults:  append([]fault.Code{fault.InvalidField, fault.MessageTooBig}, known...), Handler: operating((*API).resendLetter),
		},
		{
			Method: "DELETE", Path: "/dead-letters/{seq}", ID: "discardDeadLetter", Tag: "installation", Summary: "Discard a dead letter for good. For operators.",
			Answers: []openapi.Answer{{Status: http.StatusNoContent, About: "The dead letter is discarded."}}, Faults: known, Handler: operating((*API).discardLetter),
		},
	}
}
