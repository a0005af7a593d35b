package input

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/waggle-dev/waggle/gateway/internal/strict"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
)

// roles are those of messages, with the forms of content that they take: the first bytes of its JSON. Those with an n may have none.
var roles = map[string]string{
	wire.RoleUser: `"[`, wire.RoleSystem: `"`, wire.RoleDeveloper: `"`, wire.RoleAssistant: `"n`, wire.RoleTool: `"[`, wire.RoleReasoning: `"`, wire.RoleActivity: `{`,
}

// forms are the forms of content in words.
var forms = map[string]string{`"[`: "a string, or a list of parts", `"`: "a string", `"n`: "a string, or absent", `{`: "an object"}

// checkMessages returns why a list is not one of messages, with the place of the first that is not one: what is passed over would
// be lost without a word.
func checkMessages(list []wire.Message) error {
	for i := range list {
		if err := checkMessage(&list[i], fmt.Sprintf("messages[%d]", i)); err != nil {
			return err
		}
	}
	return nil
}

func checkMessage(m *wire.Message, field string) error {
	form, known := roles[m.Role]
	switch {
	case !known:
		return strict.Wrong(field+".role", "user, assistant, tool, system, developer, reasoning or activity")
	case m.ID == "":
		return strict.Wrong(field+".id", "a string that is not empty")
	case m.Role == wire.RoleTool && m.ToolCallID == "":
		return strict.Wrong(field+".toolCallId", "the id of the call that the message is the result of")
	}
	content := bytes.TrimSpace(m.Content)
	if len(content) == 0 {
		content = []byte("null")
	}
	if !slices.Contains([]byte(form), content[0]) {
		return strict.Wrong(field+".content", forms[form])
	}
	return checkParts(content, field+".content")
}

// checkParts checks that the parts of a message are some. Their contents count in new messages only: older ones are not read again.
func checkParts(content []byte, field string) error {
	if content[0] != '[' {
		return nil
	}
	var parts []json.RawMessage
	if json.Unmarshal(content, &parts) != nil || len(parts) > maxParts {
		return strict.Wrong(field, fmt.Sprintf("a string or a list of at most %d parts", maxParts))
	}
	for i, raw := range parts {
		var p wire.Part
		if bytes.TrimSpace(raw)[0] != '{' || json.Unmarshal(raw, &p) != nil || p.Type == "" {
			return strict.Wrong(fmt.Sprintf("%s[%d]", field, i), "an object with a type, such as text")
		}
	}
	return nil
}
