package fold

import (
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"

	"github.com/waggle-dev/waggle/gateway/agui/fold/input"
)

// differs reports whether the client has other messages than the thread, from the first one on that both have: another text
// under the same id, an answer that the thread does not have (as one that was withdrawn when its worker was lost), or less than
// the thread. A client that has no message of the thread only sends its new ones, and older messages may be those of a
// conversation that it has brought, or that the thread has forgotten. The texts of steps and members count only where the
// client has them: not all front ends keep these.
func (r request) differs() bool {
	theirs, from, differ := r.inCommon()
	if from < 0 || differ {
		return differ
	}
	has := make(map[string]bool, 2*len(theirs))
	for _, one := range theirs {
		has[one.id], has[one.text] = true, has[one.text] || one.role == wire.RoleAssistant
	}
	for _, m := range r.thread.history.list[from:] {
		one, spoken := m.spoken()
		if spoken && m.SubagentRunID == "" && !has[one.id] && (one.role == wire.RoleUser || !has[one.text]) {
			return true
		}
	}
	return false
}

// inCommon returns the client's texts from the first message on that the thread has, too, and the place of that one in the
// thread; -1 without one. differ says that one of them is not in the thread, or says something else there.
func (r request) inCommon() (theirs []spoken, from int, differ bool) {
	from = -1
	var ours map[string]bool
	for _, m := range r.q.Messages {
		if m.Role != wire.RoleUser && m.Role != wire.RoleAssistant {
			continue
		}
		i := r.thread.history.index(m.ID)
		c, err := input.ContentOf(&m, "messages")
		if i >= 0 {
			if from < 0 {
				from, ours = i, r.thread.history.said(i)
			}
			mine, _ := input.ContentOf(&r.thread.history.list[i].Message, "messages")
			if !r.thread.history.list[i].open && (err != nil || c.Text != mine.Text) {
				return nil, from, true
			}
		}
		if from < 0 || c.Text == "" {
			continue
		}
		if i < 0 && m.Role == wire.RoleAssistant && !ours[c.Text] { // front ends may have ids of their own for the same text
			return nil, from, true
		}
		theirs = append(theirs, spoken{m.ID, m.Role, c.Text})
	}
	return theirs, from, false
}
