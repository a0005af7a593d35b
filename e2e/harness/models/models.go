package models

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// Reply is what a model answers.
type Reply = scripted.Reply

// Team is the models of the members of a team, as replies by cue: a cue is the
// member's name and the text that it was told, "Writer: write" by a user, "Writer:
// Editor says write" by a colleague, "Writer: task draft" by the board; the n-th reply
// of a cue is given once n-1 of them have been given since.
type Team map[string][]Reply

// Texts of prompts and messages that name the member, and the sender of its message.
var (
	asWhom   = regexp.MustCompile(`You are (\S+), a member of the team`)
	byOther  = regexp.MustCompile(`(?s)^Message from (\S+?)(?: \(role: [^\n]*\))?:\n\n(.*)$`)
	byNotice = regexp.MustCompile(`^Notification from the system:\n\nThe task \S+ \(([^\n]*)\) is yours`)
)

// Script is the models as one server.
func (c Team) Script() scripted.Script {
	return func(x *scripted.Exchange) scripted.Reply {
		cue, n := c.cueOf(x)
		if n >= len(c[cue]) {
			return scripted.Fail(http.StatusBadRequest, "invalid_request_error", fmt.Sprintf("no answer is scripted for %q, time %d", cue, n+1))
		}
		return c[cue][n]
	}
}

// cueOf returns the cue of a request, and how often the model has answered it already.
func (c Team) cueOf(x *scripted.Exchange) (cue string, answered int) {
	who := asWhom.FindStringSubmatch(x.Prompt.System)
	if who == nil {
		return "unknown", 0
	}
	for _, m := range x.Prompt.Messages {
		switch m.Role {
		case model.RoleUser:
			cue, answered = c.cue(who[1], m.Content), 0
		case model.RoleAssistant:
			answered++
		}
	}
	return cue, answered
}

// cue returns the cue of a user's message, which begins with earlier messages that have no answer: they are joined.
func (c Team) cue(who, said string) string {
	parts := strings.Split(said, "\n\n")
	for i := len(parts) - 1; i > 0; i-- {
		if cue := who + ": " + told(strings.Join(parts[i:], "\n\n")); c[cue] != nil {
			return cue
		}
	}
	return who + ": " + told(said)
}

func told(said string) string {
	if m := byOther.FindStringSubmatch(said); m != nil {
		return m[1] + " says " + m[2]
	}
	if m := byNotice.FindStringSubmatch(said); m != nil {
		return "task " + m[1]
	}
	said, _, _ = strings.Cut(said, "\n\n") // without its attachments
	return said
}

// Says answers with a text.
func Says(text string) Reply {
	return scripted.Stream(scripted.Text(scripted.Words(text)...), scripted.Usage(7, 5))
}

// Calls answers with a call of a tool.
func Calls(tool string, arguments any) Reply {
	raw, err := json.Marshal(arguments)
	if err != nil {
		return scripted.Fail(http.StatusInternalServerError, "api_error", err.Error())
	}
	return scripted.Stream(scripted.Calls(0, scripted.Call{ID: "c1", Name: tool, Arguments: string(raw)}), scripted.Usage(7, 5))
}

// Writes answers with a message to a colleague.
func Writes(to, content string) Reply {
	return Calls("send_message_to", map[string]any{"recipient_name": to, "content": content})
}

// Holds answers with half a text, and with the rest once the gate is open.
func Holds(gate <-chan struct{}) Reply {
	return scripted.Stream(scripted.Text("half "), scripted.Gate(gate), scripted.Text("done"), scripted.Usage(7, 5))
}
