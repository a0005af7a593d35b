package gen

import "github.com/waggle-dev/waggle/proto-schemas/team"

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

// teamTarget is what names a member of the team.
var teamTarget = node{"properties": node{
	"target_member_path":      optionalTexts("Path of member names from the team of the socket. It wins over all other members that name a member."),
	"target_member_route_key": optionalText("The same as one text: backend_team/Coder."),
	"member_route_key":        optionalText("The same."),
	"target_member_name":      optionalText("Name of a member, or a path. The default is the coordinator, of STOP_GENERATION all."),
	"target_agent_name":       optionalText("The same."),
	"agent_name":              optionalText("The same."),
	"agent_id":                optionalText("Id of the agent."),
	"message_id":              messageID,
}}

var messageID = optionalText("Chosen by the client: a message that is sent again with the same id counts once. Addition.")

// teamSent is the schema of a message of clients.
func teamSent(kind string) node {
	payload, required := node{"allOf": []node{to("Target")}}, []string{}
	switch kind {
	case team.SendMessage:
		required = append(required, "content")
		paths, images := optionalTexts("Paths of files in the workspace."), optionalTexts("Images that belong to it.")
		payload["properties"] = node{
			"content":            neededText("The work to do. Not empty, not only white space."),
			"context_file_paths": paths, "contextFilePaths": paths, "image_urls": images, "imageUrls": images,
		}
	case team.StopGeneration:
		payload["properties"] = node{"reason": optionalText("Why.")}
	case team.ApproveTool, team.DenyTool:
		required = append(required, "invocation_id")
		payload["properties"] = teamAnswer
	default:
		payload = node{"properties": node{"message_id": messageID}}
	}
	s := node{
		"description": aboutIn[kind], "type": "object", "required": []string{"type"},
		"properties": node{"type": node{"const": kind}, "payload": payload},
	}
	if payload["type"] = "object"; len(required) > 0 {
		payload["required"], s["required"] = required, []string{"type", "payload"}
	} else {
		payload["type"] = []string{"object", "null"}
	}
	return s
}

// teamAnswer is the answer to a question whether a tool call may run.
var teamAnswer = node{
	"invocation_id": neededText("That of TOOL_APPROVAL_REQUESTED."),
	"reason":        optionalText("Why. The model is told."),
	"approval_token": node{
		"type": []string{"object", "null"}, "required": []string{"invocationId"},
		"description": "That of TOOL_APPROVAL_REQUESTED. It may be left out; if it is there it is checked.",
		"properties": node{
			"invocationId":     neededText("The same as invocation_id."),
			"targetMemberName": optionalText("Route of the member."),
			"digest":           optionalText("Of the call: tool and arguments."),
		},
	},
}
