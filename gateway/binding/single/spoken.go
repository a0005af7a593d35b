package single

import (
	"strings"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// spoken turns a message to a session into the answer to its open question that the connection has shown: clients of the original
// protocol can send nothing else, and their next messages would wait for the run that asks. An agent is told the text. Elsewhere a
// yes allows; anything else refuses and is the reason.
func spoken(session id.Entity, shown *stream.Questions, intents []dialect.Intent) {
	if len(intents) != 1 {
		return
	}
	said, is := intents[0].Data.(dialect.SendMessage)
	if !is {
		return
	}
	input, scope := shown.Open(session)
	if input == "" {
		return
	}
	a := dialect.Answer{InputID: input, Feedback: strings.TrimSpace(said.Content)}
	switch allows, decides := decision(a.Feedback); {
	case scope == event.ScopeAgent:
		a.Approved = true
	case decides:
		a.Approved, a.Feedback = allows, ""
	}
	intents[0].Data = a
}

// decisions are the words that decide, in the languages that answers are expected in.
var decisions = map[string]bool{
	"yes": true, "y": true, "yep": true, "yeah": true, "ok": true, "okay": true, "sure": true, "allow": true, "approve": true, "approved": true,
	"go ahead": true, "yes please": true, "do it": true, "是": true, "是的": true, "好": true, "好的": true, "可以": true, "同意": true, "允许": true, "批准": true,
	"no": false, "n": false, "nope": false, "deny": false, "reject": false, "refuse": false, "don't": false, "no thanks": false, "stop": false,
	"否": false, "不": false, "不是": false, "不行": false, "不可以": false, "不同意": false, "拒绝": false,
}

// decision returns what a text decides, if it is nothing but a decision.
func decision(text string) (allows, decides bool) {
	text = strings.ToLower(strings.Trim(text, " \t\r\n.,!。！，"))
	allows, decides = decisions[strings.Join(strings.Fields(strings.ReplaceAll(text, ",", " ")), " ")]
	return allows, decides
}
