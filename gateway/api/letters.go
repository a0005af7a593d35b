package api

import (
	"net/http"
	"strconv"
	"sync"

	"github.com/waggle-dev/waggle/gateway/api/openapi"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/edge"
	sender "github.com/waggle-dev/waggle/internal/command"
	stored "github.com/waggle-dev/waggle/internal/letters"
	"github.com/waggle-dev/waggle/internal/signature"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// letters are dead letters: the commands of the tenant that services have given up. They are for operators.
type letters struct {
	*parts
	signatures *signature.Verifier // may be nil
	again      *sender.Sender      // of commands that were signed before, or never
}

// letterLimit is the number of dead letters of a page, some 3 KB each. To list them the service reads their commands, too, of at most
// 256 KiB.
var letterLimit = limit("Dead letters", 50, 100)

func (l letters) routes() []Route {
	return []Route{
		{
			Method: "GET", Path: "/dead-letters", ID: "listDeadLetters", Tag: "installation", Summary: "List the commands of the tenant that services have given up, the newest first. For operators.",
			Query: []openapi.Parameter{before, letterLimit.Parameter}, Answers: json200("A page of dead letters.", wire.DeadLetterList{}),
			Faults: []fault.Code{fault.InvalidField}, Handler: l.server.Serve(operating(l.list)),
		},
		{
			Method: "GET", Path: "/dead-letters/{seq}", ID: "showDeadLetter", Tag: "installation", Summary: "Show a dead letter with its command. For operators.",
			Answers: json200("The dead letter.", wire.DeadLetterDetail{}), Faults: []fault.Code{fault.MessageTooBig, fault.NotFound},
			Handler: l.server.Serve(operating(l.show)),
		},
		{
			Method: "POST", Path: "/dead-letters/{seq}/resend", ID: "resendDeadLetter", Tag: "installation",
			Summary: "Send the command of a dead letter again, and remove the dead letter. For operators.",
			Answers: []openapi.Answer{{Status: http.StatusAccepted, About: "The command is queued. Its service handles it once, however often it is sent.", Type: wire.Accepted{}}},
			Faults:  []fault.Code{fault.InvalidField, fault.MessageTooBig, fault.NotFound}, Handler: l.server.Serve(operating(l.resend)),
		},
		{
			Method: "DELETE", Path: "/dead-letters/{seq}", ID: "discardDeadLetter", Tag: "installation", Summary: "Discard a dead letter for good. For operators.",
			Answers: []openapi.Answer{{Status: http.StatusNoContent, About: "The dead letter is discarded."}}, Faults: []fault.Code{fault.NotFound},
			Handler: l.server.Serve(operating(l.discard)),
		},
	}
}

// list answers with a page of the dead letters of the tenant.
func (l letters) list(r *http.Request, who *edge.Client) (any, error) {
	q := queryOf(r)
	in := pageRequest(q, who, letterLimit)
	if q.err != nil {
		return nil, q.err
	}
	return ask[wire.DeadLetterList](r, who, cmd.Installation, cmd.ListLetters, in)
}

// show answers with a dead letter and its command.
func (l letters) show(r *http.Request, who *edge.Client) (any, error) {
	_, dead, err := l.named(r, who)
	if err != nil {
		return nil, err
	}
	return dead.Detail()
}

// resend has the service of a dead letter queue its command again, and discards the letter. After a failure between
// the two the letter stays, and a repeat queues nothing twice.
func (l letters) resend(r *http.Request, who *edge.Client) (any, error) {
	at, dead, err := l.named(r, who)
	if err != nil {
		return nil, err
	}
	c, err := dead.Renewed()
	if err != nil {
		return nil, err
	}
	if clientsSend().MayPublish(subject.CommandsOf(c.Service, c.Verb)) {
		err = l.sendAgain(r, c)
	} else {
		_, err = change[cmd.ResendReply](r, who, cmd.Letters, c.Service, at)
	}
	if err != nil {
		return nil, err
	}
	if err := discarded(r, who, at); err != nil && !gone(err) {
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
func (l letters) sendAgain(r *http.Request, c cmd.Command) error {
	if err := l.edge.Signer.Renew(l.signatures, &c); err != nil {
		return err
	}
	return l.again.Send(r.Context(), c)
}

// discard removes a dead letter for good.
func (l letters) discard(r *http.Request, who *edge.Client) (any, error) {
	at, err := letterRef(r, who)
	if err != nil {
		return nil, err
	}
	return respond.NoContent{}, discarded(r, who, at)
}

// discarded has the service discard a letter.
func discarded(r *http.Request, who *edge.Client, at cmd.LetterRequest) error {
	_, err := change[struct{}](r, who, cmd.Installation, cmd.DiscardLetter, at)
	return err
}

// gone reports whether the error says that a letter does not exist: another request has dealt with it.
func gone(err error) bool { return fault.From(err, "").Code == fault.NotFound }

// named returns the dead letter that the request names.
func (l letters) named(r *http.Request, who *edge.Client) (at cmd.LetterRequest, dead stored.Letter, err error) {
	if at, err = letterRef(r, who); err == nil {
		dead, err = ask[stored.Letter](r, who, cmd.Installation, cmd.ShowLetter, at)
	}
	return at, dead, err
}

func letterRef(r *http.Request, who *edge.Client) (cmd.LetterRequest, error) {
	p := who.Principal()
	seq, err := strconv.ParseUint(r.PathValue("seq"), 10, 64)
	if err != nil {
		return cmd.LetterRequest{}, fault.Newf(fault.NotFound, "This dead letter does not exist. Use the seq of one in the list.").Wrap(err)
	}
	return cmd.LetterRequest{Tenant: p.Tenant, Sequence: seq}, nil
}
