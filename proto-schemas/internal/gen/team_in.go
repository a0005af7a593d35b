package gen

import "github.com/waggle-dev/waggle/proto-schemas/team"

// notBlank matches a text that has something besides white space.
const notBlank = "[^\\s\v\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"

// aboutIn says what the messages of clients are.
var aboutIn = map[string]string{
	team.SendMessage:    "From the client: a member, or the coordinator, is to do something.",
	team.StopGeneration: "From the client: a member, or all of them, is to stop.",
	team.ApproveTool:    "From the client: a tool call may run.",
	team.DenyTool:       "From the client: a tool call may not run.",
	team.Pause:          "From the client: members get no more messages. Addition.",
	team.Resume:         "From the client: members get messages again. Addition.",
}

func optionalText(about string) node {
	return node{"type": []string{"string", "null"}, "description": about}
}

func neededText(about string) node {
	return node{"type": "string", "pattern": notBlank, "description": about}
}

func optionalTexts(about string) node {
	return node{"type": []string{"array", "null"}, "items": node{"type": "string"}, "description": about}
}

// targets are the members that name a member of the team.
func targets() node {
	return node{
		"target_member_path":      optionalTexts("Path of member names from the team of the socket. It wins over all other members that name a member."),
		"target_member_route_key": optionalText("The same as one text: backend_team/Coder."),
		"member_route_key":        optionalText("The same."),
		"target_member_name":      optionalText("Name of a member, or a path. The default is the coordinator, of STOP_GENERATION all."),
		"target_agent_name":       optionalText("The same."),
		"agent_name":              optionalText("The same."),
		"agent_id":                optionalText("Id of the agent."),
		"message_id":              optionalText("Chosen by the client: a message that is sent again with the same id counts once. Addition."),
	}
}

// inbound is the schema of a message of clients.
func inbound(kind string) node {
	props, required := targets(), []string{}
	switch kind {
	case team.SendMessage:
		required = append(required, "content")
		props["content"] = neededText("What to do. Not empty, not only white space.")
		for _, name := range []string{"context_file_paths", "contextFilePaths"} {
			props[name] = optionalTexts("Paths of files in the workspace.")
		}
		for _, name := range []string{"image_urls", "imageUrls"} {
			props[name] = optionalTexts("Images that belong to it.")
		}
	case team.StopGeneration:
		props["reason"] = optionalText("Why.")
	case team.ApproveTool, team.DenyTool:
		required = append(required, "invocation_id")
		props["invocation_id"] = neededText("That of TOOL_APPROVAL_REQUESTED.")
		props["reason"] = optionalText("Why. The model is told.")
		props["approval_token"] = node{
			"type": []string{"object", "null"}, "required": []string{"invocationId"},
			"description": "That of TOOL_APPROVAL_REQUESTED. It may be left out; if it is there it is checked.",
			"properties": node{
				"invocationId":     node{"type": "string", "pattern": notBlank, "description": "The same as invocation_id."},
				"targetMemberName": optionalText("Route of the member."),
				"digest":           optionalText("Of the call: tool and arguments."),
			},
		}
	default:
		props = node{"message_id": props["message_id"]}
	}
	s := node{
		"title": kind, "description": aboutIn[kind], "type": "object", "required": []string{"type"},
		"properties": node{"type": node{"const": kind}},
	}
	payload := node{"type": "object", "properties": props}
	if len(required) > 0 {
		payload["required"], s["required"] = required, []string{"type", "payload"}
	} else {
		payload["type"] = []string{"object", "null"}
	}
	return with(s, "payload", payload)
}
