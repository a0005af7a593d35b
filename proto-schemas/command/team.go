package command

import (
	"encoding/json"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Verbs of the member service, besides those of the pipeline service. Its key is the
// agent's id.
var (
	CreateMember = id.MustName("create")     // data: event.AgentCreatedData
	NoteTodos    = id.MustName("note_todos") // data: event.TodosUpdatedData
	CloseMember  = id.MustName("close")      // data: CloseSession
)

// Verbs of the team service. Commands of one team are handled in order. Besides these it takes SendMessage, Cancel (which
// stops the member, or all) and Answer, for the team or for Command.Member.
var (
	CreateTeam = id.MustName("create")          // data: NewTeam
	PauseTeam  = id.MustName("pause")           // no data
	ResumeTeam = id.MustName("resume")          // no data
	CloseTeam  = id.MustName("close")           // data: CloseSession
	ActTeam    = id.MustName("act")             // data: TeamAct; a member calls a team tool
	WakeTeam   = id.MustName("wake")            // no data; check for work
	CheckTeam  = id.MustName("check_deadlines") // no data; a deadline of the team has passed
)

// Verbs of the team service for request and reply.
var (
	AttachTeam = id.MustName("attach") // TeamAttachRequest -> TeamAttachReply
	FoundTeam  = id.MustName("found")  // TeamRequest{Definition} -> TeamView; checks the definition and creates the team
	ShowTeam   = id.MustName("show")   // TeamRequest{TeamID} -> TeamView
	ListTeams  = id.MustName("list")   // TeamRequest -> TeamList
)

// Tools that a team offers to its members.
const (
	ToolSendMessage = "send_message_to"
	ToolCreateTasks = "create_tasks"
	ToolUpdateTask  = "update_task_status"
	ToolListTasks   = "list_tasks"
	ToolUpdateTodos = "update_todos"
)

// NewTeam creates a team, or does nothing if it exists. The sender has checked the definition.
type NewTeam struct {
	Definition event.TeamDefinition `json:"definition"`
	Parent     *event.TeamParent    `json:"parent,omitempty"`
}

// TeamAct is a member's call of a team tool. CallID makes it happen once; the answer is the direct message
// event.TeamActedData, and the same for every repeat.
type TeamAct struct {
	Member    string          `json:"member"` // its name in this team
	AgentID   string          `json:"agent_id"`
	RunID     string          `json:"run_id"`
	CallID    string          `json:"call_id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Tainted   bool            `json:"tainted,omitempty"` // the member has read untrusted output
}

// TeamRequest is a request to the team service.
type TeamRequest struct {
	Tenant     id.Tenant             `json:"tenant"`
	Principal  string                `json:"principal,omitempty"`
	All        bool                  `json:"all,omitempty"`     // it sees every team of the tenant
	TeamID     string                `json:"team_id,omitempty"` // found: the id of the new team; if a team has it already, that team is returned
	Definition *event.TeamDefinition `json:"definition,omitempty"`
	Named      string                `json:"named,omitempty"`  // instead of Definition: the name of one in the configuration
	Before     string                `json:"before,omitempty"` // of a list: the next of the previous page
	Limit      int                   `json:"limit,omitempty"`  // of a list: teams of the page; 0 = 100
}

// TeamAttachRequest asks for the state that a viewer needs first.
type TeamAttachRequest struct {
	Tenant    id.Tenant `json:"tenant"`
	Principal string    `json:"principal,omitempty"`
	All       bool      `json:"all,omitempty"` // as in TeamRequest
	Kind      id.Kind   `json:"kind"`          // team, agent
	ID        id.Entity `json:"id"`
}

// TeamAttachReply holds that state. A missing team or agent is the fault TEAM_NOT_FOUND or AGENT_NOT_FOUND.
type TeamAttachReply struct {
	TeamView             // of the team, or of the agent's team
	Head     uint64      `json:"head"`            // seq of the newest event in the view: of the team's log, or of the agent's
	From     uint64      `json:"from"`            // the active run began after this seq
	Recent   uint64      `json:"recent"`          // where a viewer without a position begins: no message or run straddles this seq
	Agent    *MemberView `json:"agent,omitempty"` // kind agent
}

// TeamView is the current state of a team.
type TeamView struct {
	TeamID     string               `json:"team_id"`
	Name       string               `json:"name"`
	Status     string               `json:"status"`
	Error      string               `json:"error_message,omitempty"`
	Parent     *event.TeamParent    `json:"parent,omitempty"`
	Definition event.TeamDefinition `json:"definition"`
	Members    []MemberView         `json:"members"` // those of nested teams follow their team
	Board      []event.BoardTask    `json:"board"`
	CreatedAt  time.Time            `json:"created_at"`
	Closed     bool                 `json:"closed,omitempty"`
}

// MemberView is the current state of a member of a team.
type MemberView struct {
	Name   string `json:"name"`
	Route  string `json:"route"`        // path of member names from the requested team
	Kind   string `json:"kind"`         // agent, team
	ID     string `json:"id,omitempty"` // empty: not started yet
	Status string `json:"status"`       // of an agent event.AgentStatus, of a team as TeamView.Status
}

// TeamList is the answer to a list, the newest team first. It leaves out nested teams.
type TeamList struct {
	Teams []TeamView `json:"teams"`
	Named []string   `json:"named,omitempty"` // names of definitions in the configuration
	Next  string     `json:"next,omitempty"`  // the parameter before of the next page
	More  bool       `json:"more,omitempty"`  // more teams follow
}
