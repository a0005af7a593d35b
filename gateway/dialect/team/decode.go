package team

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/dialect/internal/strict"
	"github.com/waggle-dev/waggle/gateway/dialect/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
)

// quoteLimit bounds how much of an unknown type is quoted back, in bytes: longer than
// any type, short enough for one line.
const quoteLimit = 40

// asked is what a frame asks for.
type asked struct {
	service, verb id.Name
	data          any
	member        string
}

// verbs are what the messages ask for.
var verbs = map[string]func(*form, fields, dialect.Inbound) asked{
	wire.SendMessage:    (*form).message,
	wire.StopGeneration: (*form).stop,
	wire.ApproveTool:    (*form).approve,
	wire.DenyTool:       (*form).deny,
	wire.Pause:          (*form).pause,
	wire.Resume:         (*form).resume,
}

// Decode implements dialect.Codec.
func (*codec) Decode(frame []byte, in dialect.Inbound) ([]command.Command, error) {
	top, ok := strict.Members(frame)
	if !ok {
		return nil, invalid("", "A message is a JSON object.")
	}
	kind, ok := strict.Text(top["type"])
	if !ok {
		return nil, invalid("type", "A message has a type, which is a string.")
	}
	verb, ok := verbs[kind]
	if !ok {
		return nil, fault.Newf(fault.UnknownType, "The message type %q is not known here. Send one of: %s.",
			clip(kind), strings.Join(wire.Inbound, ", ")).At("type")
	}
	f := &form{}
	p := f.payload(top)
	a := verb(f, p, in)
	cmdID := f.messageID(p, in)
	if f.fault != nil {
		return nil, f.fault
	}
	raw, err := json.Marshal(a.data)
	if err != nil {
		return nil, fault.From(err, "")
	}
	return []command.Command{{
		ID: cmdID, Service: a.service, Verb: a.verb, Tenant: in.Session.Tenant, Key: in.Session.Entity,
		Principal: in.Principal, Time: in.Now.UTC(), Data: raw, Member: a.member,
	}}, nil
}

func clip(s string) string {
	if len(s) > quoteLimit {
		return strings.ToValidUTF8(s[:quoteLimit], "") + "..."
	}
	return s
}

func invalid(field, text string) *fault.Fault {
	return fault.Newf(fault.InvalidField, "%s", text).At(field)
}

// message asks a member to do something, or the coordinator.
func (f *form) message(p fields, in dialect.Inbound) asked {
	m := command.UserMessage{Content: f.needText(p, "content")}
	m.ContextFiles = f.texts(p, "context_file_paths", "contextFilePaths")
	m.ImageURLs = f.texts(p, "image_urls", "imageUrls")
	return asked{command.Pipeline, command.SendMessage, m, f.target(p, in)}
}

// stop ends what is on, and what waits.
func (f *form) stop(p fields, in dialect.Inbound) asked {
	return asked{command.Pipeline, command.Cancel, command.CancelRun{All: true, Reason: f.text(p, "reason")}, f.target(p, in)}
}

func (f *form) approve(p fields, in dialect.Inbound) asked { return f.respond(p, in, true) }

func (f *form) deny(p fields, in dialect.Inbound) asked { return f.respond(p, in, false) }

// respond answers a question. In teams it is named by its call, which is known nowhere
// else: the name of the member is not needed to find it, and may be that of one in a
// nested team, so that only a path is passed on.
func (f *form) respond(p fields, in dialect.Inbound, approved bool) asked {
	call := f.needText(p, "invocation_id")
	r := command.AnswerQuestion{Approved: approved, Feedback: f.text(p, "reason")}
	token := f.token(p, call)
	r.Digest = token.Digest
	if in.Session.Kind == id.KindTeam || in.Session.Kind == id.KindMember {
		r.CallID = call
	} else {
		r.InputID = call
	}
	f.target(p, in)
	a := asked{command.Pipeline, command.Answer, r, ""}
	if in.Session.Kind == id.KindTeam {
		a.member = narrate.First(f.path(p), token.TargetMemberName)
	}
	return a
}

func (f *form) pause(_ fields, in dialect.Inbound) asked { return f.whole(command.PauseTeam, in) }

func (f *form) resume(_ fields, in dialect.Inbound) asked { return f.whole(command.ResumeTeam, in) }

// whole asks something of a team as a whole.
func (f *form) whole(verb id.Name, in dialect.Inbound) asked {
	if in.Session.Kind != id.KindTeam {
		f.wrong("type", "one for a team, which this socket does not show")
	}
	return asked{command.Team, verb, struct{}{}, ""}
}

// wrong notes what is wrong with a member. The first thing counts.
func (f *form) wrong(field, rule string) {
	if f.fault == nil {
		f.fault = invalid(field, fmt.Sprintf("%s has to be %s.", field, rule))
	}
}
