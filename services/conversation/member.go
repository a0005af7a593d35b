package conversation

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// approvable returns the fault of an answer that approves a call which is not exactly known, or may not run. shown is the
// digest of the call that the person has seen.
func (in *Input) approvable(c command.Command, d command.AnswerQuestion, shown string, rules Rules) *fault.Fault {
	if !d.Approved {
		if given(d.Arguments) {
			return fault.Newf(fault.InvalidField, "An answer that rejects a call changes no arguments. The question stays open.").At("arguments")
		}
		return nil
	}
	if shown == "" {
		return fault.Newf(fault.InputNotFound, "The approval does not name the call that it is for. Look at the question again.")
	}
	if given(d.Arguments) {
		if f := in.fits(d, rules); f != nil {
			return f
		}
	}
	if p := c.Proof(); p != nil && len(p.Data) == 0 {
		return fault.Newf(fault.InvalidField, "The answer is too long for an approval. Send less than 48 KB of arguments and feedback.")
	}
	return nil
}

// fits returns the fault of arguments that the tool does not take.
func (in *Input) fits(d command.AnswerQuestion, rules Rules) *fault.Fault {
	wrong := func(text string, args ...any) *fault.Fault {
		return fault.Newf(fault.InvalidField, text, args...).At("arguments")
	}
	if in.Schema == "" || rules.Fits == nil {
		return wrong("The arguments of this call cannot be changed. Approve it as it is, or reject it and say what should be different.")
	}
	if f := rules.Fits(json.RawMessage(in.Schema), d.Arguments); f != nil {
		return wrong("%s The question stays open.", f.Public())
	}
	if d.Digest != event.CallDigest(in.Tool, d.Arguments) {
		return fault.Newf(fault.InputNotFound, "The approval is for other arguments than it has. Look at the question again.")
	}
	return nil
}

// question is the message that the run answers, as a model sees it.
func (s *State) question(r *Run) string {
	if r.Sender == nil && len(r.Spec.Facts)+len(r.Attachments.ContextFiles)+len(r.Attachments.ImageURLs)+len(r.Spec.Files) == 0 {
		return r.Content
	}
	var b strings.Builder
	if r.Sender != nil {
		b.WriteString(s.from(*r.Sender) + "\n\n")
	}
	for _, f := range r.Spec.Facts {
		fmt.Fprintf(&b, "For your information: %s\n%s\n\n", f.Description, f.Value)
	}
	b.WriteString(r.Content)
	for i, file := range r.Attachments.ContextFiles {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString("\nContext file: " + file)
	}
	for i, url := range r.Attachments.ImageURLs {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString("\nImage: " + url)
	}
	b.WriteString(listed(r.Spec.Files))
	return b.String()
}

// listed names files. Texts are in the message already.
func listed(files []event.File) string {
	var b strings.Builder
	for _, f := range files {
		if f.Text() {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "\nFile: %s (%s, %d bytes)", orElse(f.Name, f.Kind), f.MediaType, f.Size)
	}
	return b.String()
}

// from says who a message is from.
func (s *State) from(sender event.Sender) string {
	if sender.Kind == event.SenderSystem {
		return "Notification from the system:"
	}
	name := orElse(sender.Name, sender.ID)
	if s.Agent != nil {
		for _, c := range s.Agent.Colleagues {
			if c.Name == name && c.Role != "" {
				return fmt.Sprintf("Message from %s (role: %s):", name, c.Role)
			}
		}
	}
	return fmt.Sprintf("Message from %s:", name)
}
