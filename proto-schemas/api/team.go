package api

import "github.com/waggle-dev/waggle/proto-schemas/event"

// NewTeam is a definition of a team, or the name of one in the configuration.
type NewTeam struct {
	ID    string `json:"id,omitempty"`    // the client's id for the request: a repeat has the same and gets the same team
	Named string `json:"named,omitempty"` // instead of a definition
	event.TeamDefinition
}

// TeamMessage is a message to a team.
type TeamMessage struct {
	ID      string `json:"id,omitempty"` // the client's id for it: a repeat has the same and gets the same response
	Content string `json:"content"`
	Target  string `json:"target,omitempty"` // member: a name, a path of names or an id; absent = the coordinator
	event.Attachments
}

// StopTeam is the optional body of a stop.
type StopTeam struct {
	Target string `json:"target,omitempty"` // member: a name, a path of names or an id; absent = all members
	Reason string `json:"reason,omitempty"`
}
