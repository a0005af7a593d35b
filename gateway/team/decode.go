package team

import (
	"strings"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/internal/strict"
	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
)

// quoteLimit bounds how much of an unknown type is quoted back, in bytes: longer than
// any type, short enough for one line.
const quoteLimit = 40

// readers read the messages. The id of the intent is read afterwards.
var readers = map[string]func(*form, fields, dialect.Inbound) dialect.Intent{
	wire.SendMessage:    (*form).message,
	wire.StopGeneration: (*form).stop,
	wire.ApproveTool:    (*form).approve,
	wire.DenyTool:       (*form).deny,
	wire.Pause:          (*form).pause,
	wire.Resume:         (*form).resume,
}

// Decode implements dialect.Codec.
func (*Codec) Decode(frame []byte, in dialect.Inbound) ([]dialect.Intent, error) {
	top, ok := strict.Members(frame)
	if !ok {
		return nil, invalid("", "A message must be a JSON object.")
	}
	kind, ok := strict.Text(top["type"])
	if !ok {
		return nil, invalid("type", "type must be a string.")
	}
	read, ok := readers[kind]
	if !ok {
		return nil, fault.Newf(fault.UnknownType, "The message type %q is unknown. Send one of: %s.",
			clip(kind), strings.Join(wire.Inbound, ", ")).At("type")
	}
	f := &form{}
	p := f.payload(top)
	intent := read(f, p, in)
	if intent.ID = f.messageID(p, in); f.fault != nil {
		return nil, f.fault
	}
	return []dialect.Intent{intent}, nil
}

func clip(s string) string {
	if len(s) > quoteLimit {
		return strings.ToValidUTF8(s[:quoteLimit], "") + "..."
	}
	return s
}

// message asks a member to do something, or the coordinator.
func (f *form) message(p fields, in dialect.Inbound) dialect.Intent {
	m := dialect.SendMessage{Content: f.needText(p, "content")}
	m.ContextFiles = f.texts(p, "context_file_paths", "contextFilePaths")
	m.ImageURLs = f.texts(p, "image_urls", "imageUrls")
	return dialect.Intent{Data: m, Member: f.target(p, in)}
}

// stop ends the active run and the waiting ones.
func (f *form) stop(p fields, in dialect.Inbound) dialect.Intent {
	return dialect.Intent{Data: dialect.Cancel{All: true, Reason: f.text(p, "reason")}, Member: f.target(p, in)}
}

func (f *form) approve(p fields, in dialect.Inbound) dialect.Intent { return f.respond(p, in, true) }

func (f *form) deny(p fields, in dialect.Inbound) dialect.Intent { return f.respond(p, in, false) }

// respond answers a question. In teams it is named by its call, which is known nowhere
// else: the name of the member is not needed to find it, and may be that of one in a
// nested team, so that only a path is passed on.
func (f *form) respond(p fields, in dialect.Inbound, approved bool) dialect.Intent {
	if bad := strict.OnlyAnswer("payload", p, answerMembers...); f.fault == nil {
		f.fault = bad
	}
	call := f.needText(p, "invocation_id")
	r := dialect.Answer{Approved: approved, Feedback: f.text(p, "reason")}
	token := f.token(p, call)
	r.Digest = token.Digest
	if in.Kind == id.KindTeam || in.Kind == id.KindMember {
		r.CallID = call
	} else {
		r.InputID = call
	}
	f.target(p, in)
	intent := dialect.Intent{Data: r}
	if in.Kind == id.KindTeam {
		intent.Member = narrate.First(f.path(p), token.TargetMemberName)
	}
	return intent
}

func (f *form) pause(_ fields, in dialect.Inbound) dialect.Intent {
	return f.whole(dialect.PauseTeam{}, in)
}

func (f *form) resume(_ fields, in dialect.Inbound) dialect.Intent {
	return f.whole(dialect.ResumeTeam{}, in)
}

// whole asks something of a team as a whole.
func (f *form) whole(data dialect.IntentData, in dialect.Inbound) dialect.Intent {
	if in.Kind != id.KindTeam {
		f.wrong("type", "a type that this connection accepts, and this one is for teams")
	}
	return dialect.Intent{Data: data}
}
