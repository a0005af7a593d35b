package asp

import (
	"unicode/utf8"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/internal/strict"
	"github.com/waggle-dev/waggle/gateway/internal/torn"
	wire "github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Oversized turns a frame beyond the size limit into orders: only to fail the task or the
// call that the frame ends. Otherwise the error says that the frame is too large. The
// rules are those of Orders.
func (c *Codec) Oversized(t Torn, in Inbound) ([]Order, string, error) {
	top, content := torn.Read(t.Head, t.Tail, "content")
	f := frame{in: in, top: object{Members: top}, content: object{Path: "content", Members: content}}
	f.id, f.kind = shown(f.top, "id"), shown(f.top, "type")
	name := f.kind
	if canonical, ok := c.types.Aliases[name]; ok {
		name = canonical
	}
	r := c.in[name]
	f.quiet = c.quiet(r, f.id != "")
	if r.member && !in.Participant.Online {
		return nil, f.id, f.refusal(fault.New(fault.NotRegistered))
	}
	why := fault.Newf(fault.MessageTooBig, "The message has %d bytes; the limit is %d. Send less at a time.", t.Size, t.Limit)
	var orders []Order
	if r.ends {
		orders = f.tooLarge(t)
	}
	if len(orders) == 0 {
		return nil, f.id, f.refusal(why)
	}
	for i := range orders {
		orders[i].RequestID, orders[i].Type, orders[i].Unanswered = f.id, f.kind, f.quiet
	}
	return orders, f.id, nil
}

// tooLarge makes the end of a task or of a call, which is too large, its failure. Where its
// frame does not show which one it is of, it is that of the only one; without one it returns
// no orders.
func (f *frame) tooLarge(t Torn) []Order {
	of := first(shown(f.content, "taskId"), shown(f.top, "taskId"), shown(f.top, "requestId"))
	if f.in.Participant.Kind == command.ParticipantService {
		if of == "" && f.kind != wire.ServiceError { // which may be about no call
			of = f.in.OnlyCall
		}
		if of == "" {
			return nil
		}
		why := fault.Newf(fault.MessageTooBig, "The result is too large: the service sent %d bytes; the limit is %d. Ask for less at a time.", t.Size, t.Limit)
		return f.forward(Forward{CallID: of, Final: true, Failure: why})
	}
	if of = first(of, f.in.OnlyTask); of == "" {
		return nil
	}
	why := fault.Newf(fault.MessageTooBig, "The result is too large: the agent sent %d bytes; the limit is %d. Ask for less at a time.", t.Size, t.Limit)
	return f.tell(of, dialect.FinishTask{
		TaskID: of, AgentID: f.in.Participant.ID, Failed: true, Code: string(why.Code), Error: why.Public(),
	})
}

// shown returns a member that can be an id or a word, empty otherwise.
func shown(o object, name string) string {
	s, ok := strict.Text(o.Get(name))
	if n := utf8.RuneCountInString(s); !ok || n > wire.MaxID {
		return ""
	}
	return s
}
