package event

import "encoding/json"

// Kinds of senders. A message without a sender comes from a user.
const (
	SenderAgent  = "agent"
	SenderSystem = "system"
)

// Scopes of a question.
const (
	ScopePlan = "plan" // about the execution of a plan
	ScopeTool = "tool" // about a tool call
	// ScopeClientTool: a tool call that the client carries out. The answer is its result.
	ScopeClientTool = "client_tool"
	// ScopeBudget: about the same amount once more for a run that has used up its budget.
	ScopeBudget = "budget"
	// ScopeAgent: a question of an agent of the swarm about its task. The answer is what the agent is told.
	ScopeAgent = "agent"
)

// Statuses of a team, as clients see them.
const (
	TeamStarting     = "STARTING"
	TeamIdle         = "IDLE"
	TeamRunning      = "RUNNING"
	TeamPaused       = "PAUSED"
	TeamFailed       = "ERROR"
	TeamShuttingDown = "SHUTTING_DOWN"
)

// Statuses of a task on the board of a team.
const (
	BoardNotStarted = "not_started"
	BoardQueued     = "queued"
	BoardInProgress = "in_progress"
	BoardCompleted  = "completed"
	BoardBlocked    = "blocked"
	BoardFailed     = "failed"
)

// Statuses of an item of an agent's to-do list.
const (
	TodoPending    = "pending"
	TodoInProgress = "in_progress"
	TodoDone       = "done"
)

// Kinds of members of a team.
const (
	MemberAgent = "agent"
	MemberTeam  = "team"
)

// Sender is the sender of a message, if not a user.
type Sender struct {
	Kind        string `json:"kind"`                   // agent, system
	ID          string `json:"id"`                     // the agent's id; of the system system.task_notifier
	Name        string `json:"name,omitempty"`         // of the member
	Route       string `json:"route,omitempty"`        // of the member, from the root team
	MessageType string `json:"message_type,omitempty"` // default direct_message
}

// Attachments are the parts of a message excluding its text.
type Attachments struct {
	ContextFiles []string `json:"context_files,omitempty"` // paths in the workspace
	ImageURLs    []string `json:"image_urls,omitempty"`
}

// TeamDefinition lists the members of a team. Names of members are unique in it; the coordinator is an agent of the
// team.
type TeamDefinition struct {
	Name        string             `json:"name"`
	Description string             `json:"description,omitempty"`
	Role        string             `json:"role,omitempty"`
	Coordinator string             `json:"coordinator"`
	Members     []MemberDefinition `json:"members"`
}

// MemberDefinition is a member of a team: another team, an agent of the swarm that
// is found by name or by capabilities, or else an agent with the built-in model.
type MemberDefinition struct {
	Name             string          `json:"name"`
	Role             string          `json:"role,omitempty"`
	Instructions     string          `json:"instructions,omitempty"`
	Model            string          `json:"model,omitempty"`              // absent = the worker's
	Tools            []string        `json:"tools,omitempty"`              // <server>/<tool> or <server>/*; absent = only the team's own
	AutoExecuteTools bool            `json:"auto_execute_tools,omitempty"` // false: people are asked before a tool runs
	Agent            string          `json:"agent,omitempty"`              // an agent of the swarm, by name
	Capabilities     []string        `json:"capabilities,omitempty"`       // an agent of the swarm that has all of them
	Team             *TeamDefinition `json:"team,omitempty"`
}

// Swarm reports whether the member is an agent of the swarm.
func (m MemberDefinition) Swarm() bool { return m.Agent != "" || len(m.Capabilities) > 0 }

// TeamParent is the place of a nested team.
type TeamParent struct {
	TeamID string `json:"team_id"` // of the enclosing team
	Node   string `json:"node"`    // its name there
	Root   string `json:"root"`    // id of the outermost team
	Route  string `json:"route"`   // path of member names from the root team to this one: a/b

	Colleagues []Colleague `json:"colleagues,omitempty"` // the other members of that team
}

// Colleague is another member of an agent's team.
type Colleague struct {
	Name string `json:"name"`
	Role string `json:"role,omitempty"`
	Kind string `json:"kind"` // agent, team
}

// MemberCreatedData opens the log of a member of a team. It is always its first event.
type MemberCreatedData struct {
	MemberID   string      `json:"member_id"`
	TeamID     string      `json:"team_id"`
	Root       string      `json:"root"`  // id of the outermost team
	Route      string      `json:"route"` // path of member names from the root team: backend_team/Coder
	TeamName   string      `json:"team_name"`
	Principal  string      `json:"principal,omitempty"`
	Colleagues []Colleague `json:"colleagues,omitempty"`
	MemberDefinition
}

// MemberClosedData ends an agent: it accepts no message afterwards.
type MemberClosedData struct {
	Reason string `json:"reason"`
}

// JobSuspendedData records that the worker has suspended a job, because it can only continue after answers of people.
// An answer resumes it with the next attempt.
type JobSuspendedData struct {
	RunID       string   `json:"run_id"`
	ExecutionID string   `json:"execution_id"`
	Attempt     int      `json:"attempt"`
	Inputs      []string `json:"inputs"` // the open questions
	Part
}

// Todo is an item of an agent's to-do list.
type Todo struct {
	TodoID      string `json:"todo_id"`
	Description string `json:"description"`
	Status      string `json:"status"` // pending, in_progress, done
}

// TodosUpdatedData is an agent's whole to-do list.
type TodosUpdatedData struct {
	RunID  string `json:"run_id,omitempty"`
	CallID string `json:"call_id,omitempty"` // the tool call that changed it
	Todos  []Todo `json:"todos"`
}

// Artifact is a file that an agent made.
type Artifact struct {
	ArtifactID    string `json:"artifact_id"`
	AgentID       string `json:"agent_id"`
	RunID         string `json:"run_id,omitempty"`
	CallID        string `json:"call_id,omitempty"`
	Path          string `json:"path"`
	Type          string `json:"type"` // file, image, audio, video, pdf, other
	WorkspaceRoot string `json:"workspace_root,omitempty"`
	URL           string `json:"url,omitempty"`

	Size   int64      `json:"size,omitempty"`   // of the contents in bytes
	Object *ObjectRef `json:"object,omitempty"` // the file as the call has left it, an ArtifactFile; absent: it is too large
}

// MaxArtifact bounds the contents that are kept of an artifact.
const MaxArtifact = 512 << 10

// ArtifactFile is the object of an artifact: the file as a call has left it.
type ArtifactFile struct {
	ArtifactID string `json:"artifact_id"`
	Path       string `json:"path"`
	Contents   []byte `json:"contents"`
}

// ArtifactPersistedData records that an agent has made a file.
type ArtifactPersistedData struct{ Artifact }

// ArtifactUpdatedData records that an agent has changed a file.
type ArtifactUpdatedData struct{ Artifact }

// TeamCreatedData opens the log of a team. It is always its first event.
type TeamCreatedData struct {
	TeamID     string         `json:"team_id"`
	Definition TeamDefinition `json:"definition"`
	Parent     *TeamParent    `json:"parent,omitempty"` // of a nested team
	Principal  string         `json:"principal,omitempty"`
}

// TeamMemberStartedData records that a member has a log from now on.
type TeamMemberStartedData struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // agent, team
	ID   string `json:"id"`   // of the agent or the team
}

// TeamStatusData is a change of the team's status, which follows from its members.
type TeamStatusData struct {
	NewStatus    string `json:"new_status"`
	OldStatus    string `json:"old_status,omitempty"`
	ErrorMessage string `json:"error_message,omitempty"`
}

// TeamMessageData records that a message for a member was accepted. The member gets it under the same id.
type TeamMessageData struct {
	MessageID string  `json:"message_id"`
	Member    string  `json:"member"`          // of this team
	Route     string  `json:"route,omitempty"` // within that member, if it is a team: the rest of the path; empty = its coordinator
	Content   string  `json:"content"`
	Sender    *Sender `json:"sender,omitempty"` // absent: a user
	Principal string  `json:"principal,omitempty"`
	CallID    string  `json:"call_id,omitempty"` // the tool call that sent it
	TaskID    string  `json:"task_id,omitempty"` // the task on the board that it announces
	Tainted   bool    `json:"tainted,omitempty"` // its sender, or the team, has read untrusted output
	Proof     *Proof  `json:"proof,omitempty"`   // of the person that sent it
	Attachments
	Extra json.RawMessage `json:"extra,omitempty"` // other members of the client's message, an object
}

// TeamMessageDroppedData records that a message will not reach its member.
type TeamMessageDroppedData struct {
	MessageID string `json:"message_id"`
	Member    string `json:"member"`
	Reason    string `json:"reason"` // stopped, closed, or the code of a fault
}

// TeamMemberEventData is an event of a member's log, byte for byte.
type TeamMemberEventData struct {
	MemberName string          `json:"member_name"`
	MemberID   string          `json:"member_id"`
	Seq        uint64          `json:"seq"`                  // in the member's log: 1, 2, 3, ... in this log too
	Status     string          `json:"status,omitempty"`     // of the member from now on, if it has changed
	OldStatus  string          `json:"old_status,omitempty"` // with Status
	Event      json.RawMessage `json:"event"`                // the canonical event as it is stored there
}

// TeamSubTeamEventData is an event of a nested team's log, byte for byte.
type TeamSubTeamEventData struct {
	SubTeamNodeName string          `json:"sub_team_node_name"`
	SubTeamID       string          `json:"sub_team_id"`
	Seq             uint64          `json:"seq"`            // in the nested team's log
	SubTeamEvent    json.RawMessage `json:"sub_team_event"` // the canonical event as it is stored there
}

// TeamStoppedData records that a request stopped members' runs.
type TeamStoppedData struct {
	CommandID string `json:"command_id"`
	Member    string `json:"member,omitempty"` // empty = all
	Route     string `json:"route,omitempty"`  // within that member, if it is a team
	By        string `json:"by,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// TeamPausedData records that members get no more messages until the team is resumed. They finish their current runs.
type TeamPausedData struct {
	CommandID string `json:"command_id"`
	By        string `json:"by,omitempty"`
}

// TeamResumedData records that waiting messages are delivered.
type TeamResumedData struct {
	CommandID string `json:"command_id"`
	By        string `json:"by,omitempty"`
}

// TeamClosingData records that the team shuts down: it stops and closes its members.
type TeamClosingData struct {
	CommandID string `json:"command_id"`
	By        string `json:"by,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// TeamClosedData is the last event of a team.
type TeamClosedData struct {
	Reason string `json:"reason,omitempty"`
}

// Deliverable is a file that belongs to a task on the board.
type Deliverable struct {
	FilePath        string `json:"file_path"`
	Summary         string `json:"summary,omitempty"`
	AuthorAgentName string `json:"author_agent_name,omitempty"`
	Timestamp       string `json:"timestamp,omitempty"` // RFC 3339
}

// BoardTask is a task on the board of a team.
type BoardTask struct {
	TaskID           string        `json:"task_id"` // task_0001, ...
	TaskName         string        `json:"task_name"`
	AssigneeName     string        `json:"assignee_name"` // a member
	Description      string        `json:"description"`
	Dependencies     []string      `json:"dependencies"`      // task ids
	FileDeliverables []Deliverable `json:"file_deliverables"` //
	Status           string        `json:"status"`            // not_started, queued, in_progress, completed, blocked, failed
}

// BoardCreatedData is the whole board after new tasks. Viewers replace their copy; statuses other than not_started
// follow as updates.
type BoardCreatedData struct {
	CallID  string      `json:"call_id"`
	By      string      `json:"by"` // the member
	Tasks   []BoardTask `json:"tasks"`
	Added   []string    `json:"added"`             // task ids
	Tainted bool        `json:"tainted,omitempty"` // the member has read untrusted output
}

// BoardUpdatedData is a change of one task on the board.
type BoardUpdatedData struct {
	CallID       string        `json:"call_id,omitempty"`
	TaskID       string        `json:"task_id"`
	NewStatus    string        `json:"new_status"`
	AgentName    string        `json:"agent_name"` // the reporter; system.task_notifier for automatic changes
	Deliverables []Deliverable `json:"deliverables,omitempty"`
	Repeated     bool          `json:"repeated,omitempty"` // a repeat, because the board was replaced
}

// TeamActedData is a direct message: the outcome of a member's call of a team tool.
type TeamActedData struct {
	CallID  string `json:"call_id"`
	Result  string `json:"result,omitempty"` // text for the model
	Code    string `json:"code,omitempty"`   // it failed
	Message string `json:"message,omitempty"`
	Todos   []Todo `json:"todos,omitempty"`

	Untrusted bool `json:"untrusted,omitempty"` // the result may hold instructions of strangers
}
