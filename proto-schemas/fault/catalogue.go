package fault

// The codes.
const (
	Internal            Code = "INTERNAL"
	BusUnavailable      Code = "BUS_UNAVAILABLE"
	Overloaded          Code = "OVERLOADED"
	Draining            Code = "DRAINING"
	RateLimited         Code = "RATE_LIMITED"
	TooManySockets      Code = "TOO_MANY_CONNECTIONS"
	Unauthenticated     Code = "UNAUTHENTICATED"
	Expired             Code = "CREDENTIALS_EXPIRED"
	Forbidden           Code = "FORBIDDEN"
	OriginRefused       Code = "ORIGIN_REFUSED"
	HostRefused         Code = "HOST_REFUSED"
	HandshakeSlow       Code = "HANDSHAKE_TIMEOUT"
	MessageSlow         Code = "MESSAGE_TIMEOUT"
	PeerSilent          Code = "PEER_SILENT"
	PeerStuck           Code = "PEER_STUCK"
	MessageTooBig       Code = "MESSAGE_TOO_BIG"
	NotText             Code = "NOT_TEXT"
	MediaType           Code = "UNSUPPORTED_MEDIA_TYPE"
	BadUTF8             Code = "BAD_UTF8"
	BadJSON             Code = "BAD_JSON"
	UnknownType         Code = "UNKNOWN_MESSAGE_TYPE"
	InvalidField        Code = "INVALID_FIELD"
	NotFound            Code = "NOT_FOUND"
	MethodNotAllowed    Code = "METHOD_NOT_ALLOWED"
	SessionNotFound     Code = "SESSION_NOT_FOUND"
	SessionClosed       Code = "SESSION_CLOSED"
	SessionDeleted      Code = "SESSION_DELETED"
	QueueFull           Code = "QUEUE_FULL"
	CursorInvalid       Code = "CURSOR_INVALID"
	HeadExpired         Code = "HISTORY_EXPIRED"
	AttemptsOver        Code = "ATTEMPTS_EXHAUSTED"
	TurnLimit           Code = "TURN_LIMIT"
	RunCancelled        Code = "RUN_CANCELLED"
	ModelFailed         Code = "MODEL_FAILED"
	ModelBusy           Code = "MODEL_BUSY"
	ModelRateLimited    Code = "MODEL_RATE_LIMITED"
	ModelRefused        Code = "MODEL_REFUSED"
	ModelKeyRefused     Code = "MODEL_KEY_REFUSED"
	ModelNotFound       Code = "MODEL_NOT_FOUND"
	ModelInputTooLong   Code = "MODEL_INPUT_TOO_LONG"
	ModelContentRefused Code = "MODEL_CONTENT_REFUSED"
	ModelOutOfQuota     Code = "MODEL_OUT_OF_QUOTA"
	ModelCutOff         Code = "MODEL_CUT_OFF"
	ModelBadReply       Code = "MODEL_BAD_REPLY"
	ModelNoAnswer       Code = "MODEL_NO_ANSWER"
	ModelTimeout        Code = "MODEL_TIMEOUT"
	ToolNotFound        Code = "TOOL_NOT_FOUND"
	ToolBadInput        Code = "INVALID_INPUT"
	ToolTimeout         Code = "TOOL_TIMEOUT"
	ToolFailed          Code = "TOOL_FAILED"
	ToolLost            Code = "TOOL_LOST"
	ToolCancelled       Code = "TOOL_CANCELLED"
	ToolsDown           Code = "TOOLS_UNAVAILABLE"
	ToolsBusy           Code = "TOOLS_BUSY"
	SessionBusy         Code = "SESSION_BUSY"
	SessionExpired      Code = "SESSION_EXPIRED"
	StateTampered       Code = "STATE_TAMPERED"
	StateExpired        Code = "STATE_EXPIRED"
	StateTooBig         Code = "STATE_TOO_BIG"
	InputAnswered       Code = "INPUT_ANSWERED"
	InputNotFound       Code = "INPUT_NOT_FOUND"
	InputExpired        Code = "INPUT_EXPIRED"
	InputRequired       Code = "INPUT_REQUIRED"
	TaskNotFound        Code = "TASK_NOT_FOUND"
	PlanInvalid         Code = "PLAN_INVALID"
	PlanFailed          Code = "PLAN_FAILED"
	TaskTimeout         Code = "TASK_TIMEOUT"
	TasksFailed         Code = "TASKS_FAILED"
	NoSuchAgent         Code = "NO_SUCH_AGENT"
	AgentNotFound       Code = "AGENT_NOT_FOUND"
	AgentOffline        Code = "AGENT_OFFLINE"
	AgentLost           Code = "AGENT_LOST"
	ClientNotFound      Code = "CLIENT_NOT_FOUND"
	ServiceNotFound     Code = "SERVICE_NOT_FOUND"
	ServiceBusy         Code = "SERVICE_UNAVAILABLE"
	ServiceLost         Code = "SERVICE_LOST"
	ServerNotFound      Code = "MCP_SERVER_NOT_FOUND"
	BadOutput           Code = "INVALID_OUTPUT"
	TaskNotOwned        Code = "TASK_NOT_OWNED"
	TaskFinished        Code = "TASK_FINISHED"
	TaskOpen            Code = "TASK_OPEN"
	PayloadLost         Code = "PAYLOAD_LOST"
	TooDeep             Code = "TASK_TOO_DEEP"
	NotRegistered       Code = "NOT_REGISTERED"
	TaskFailed          Code = "TASK_EXECUTION_ERROR"
	TeamNotFound        Code = "TEAM_NOT_FOUND"
	TeamInvalid         Code = "TEAM_INVALID"
	TeamClosed          Code = "TEAM_CLOSED"
	MemberNotFound      Code = "MEMBER_NOT_FOUND"
	ToolDenied          Code = "TOOL_DENIED"
	RunNotFound         Code = "RUN_NOT_FOUND"
	RunOver             Code = "RUN_OVER"
	QuotaExceeded       Code = "QUOTA_EXCEEDED"
	BudgetExceeded      Code = "BUDGET_EXCEEDED"
	TenantMoving        Code = "TENANT_MOVING"
	CellUnavailable     Code = "CELL_UNAVAILABLE"
)

// Catalogue lists every fault that a client can meet. Close codes of 4000 and above follow one rule: after 40xx
// reconnect at once or later, after 44xx do not reconnect unchanged. 4004 comes from the protocol of agent teams: do
// not reconnect.
var Catalogue = []Entry{
	{Internal, 500, 0, true, Server, "Something went wrong on our side. Try again; if it stays, give the reference to the operator."},
	{BusUnavailable, 503, 0, true, Server, "The message bus cannot be reached, and nothing was accepted. Try again in a few seconds."},
	{Overloaded, 503, 1013, true, Server, "The server has no room for more connections. Try again later."},
	{Draining, 503, 1012, true, Server, "This gateway is restarting. Reconnect and resume with your last seq."},
	{TenantMoving, 503, 1012, true, Server, "Your data is moving to another cell. Reconnect in a few seconds and resume with your last seq."},
	{CellUnavailable, 503, 1013, true, Server, "The cell with your data cannot be reached, and nothing was accepted. Try again in a few seconds."},
	{RateLimited, 429, 0, true, Client, "Too many messages. Send fewer per second and try again."},
	{TooManySockets, 429, 1013, true, Client, "Too many connections from one address or principal. Close some and try again."},
	{QuotaExceeded, 429, 1013, true, Client, "A quota of yours or of your tenant is used up. Wait until part of it is free, or ask the operator for a larger one."},
	{BudgetExceeded, 402, 0, false, Client, "The run has used up its budget. Ask for less at once, or ask the operator for a larger budget."},
	{Unauthenticated, 401, 4401, false, Client, "Credentials are missing or not valid. Send an API key or token."},
	{Expired, 401, 4401, false, Client, "Your credentials have expired. Get new ones and reconnect with your last seq."},
	{Forbidden, 403, 4403, false, Client, "You are not allowed to do this. Ask the operator for the permission."},
	{OriginRefused, 403, 0, false, Client, "This page's origin is not allowed. Add it to gateway.allowed_origins."},
	{HostRefused, 421, 0, false, Client, "This host name is not served here. Add it to gateway.allowed_hosts."},
	{HandshakeSlow, 408, 1008, true, Client, "No valid first message arrived in time. Reconnect."},
	{MessageSlow, 408, 1008, true, Client, "A message took too long to arrive. Reconnect and send it again."},
	{PeerSilent, 408, 4000, true, Client, "No sign of life from your side. Reconnect and resume with your last seq."},
	{PeerStuck, 408, 4001, true, Client, "You accepted no data for too long. Reconnect and resume with your last seq."},
	{MessageTooBig, 413, 1009, false, Client, "The message is larger than the limit. Send less at once."},
	{NotText, 415, 1003, false, Client, "Binary frames are not understood. Send JSON as text."},
	{MediaType, 415, 0, false, Client, "The body is not sent as JSON. Send it with the header Content-Type: application/json."},
	{BadUTF8, 400, 1007, false, Client, "The text is not valid UTF-8. Encode it as UTF-8 and reconnect."},
	{BadJSON, 400, 0, false, Client, "The message is not valid JSON. Correct it and send it again."},
	{UnknownType, 400, 0, false, Client, "This message type is unknown. Send a type of the protocol."},
	{InvalidField, 422, 0, false, Client, "A field is missing or has a value that is not allowed. Correct it and send the message again."},
	{NotFound, 404, 0, false, Client, "This name does not exist. Check it."},
	{MethodNotAllowed, 405, 0, false, Client, "This address does not take requests of this method. Use one that the header Allow names."},
	{SessionNotFound, 404, 4404, false, Client, "This session does not exist. Connect without a session to start a new one."},
	{SessionClosed, 410, 0, false, Client, "This session has ended. Connect without a session to start a new one."},
	{SessionDeleted, 410, 4410, false, Client, "This session was deleted with all that was in it. Connect without a session to start a new one."},
	{QueueFull, 429, 0, true, Client, "Too many messages are waiting in this session. Wait for an answer, then send again."},
	{CursorInvalid, 422, 4422, false, Client, "after is not a position in this session. Use the seq of the last event you received."},
	{HeadExpired, 410, 0, false, Client, "Part of the history you asked for has expired. The rest follows."},
	{AttemptsOver, 500, 0, true, Server, "The answer was attempted several times and could not be finished. Send the message again."},
	{TurnLimit, 500, 0, false, Server, "The model asked for more tool rounds than are allowed. Ask for less at once."},
	{RunCancelled, 499, 0, true, Client, "The answer was stopped before it was complete. Send the message again to get it."},
	{ModelFailed, 502, 0, true, Provider, "The model's service failed. Try again later."},
	{ModelBusy, 503, 0, true, Provider, "The model's service is overloaded. Try again later."},
	{ModelRateLimited, 503, 0, true, Provider, "The rate limit of the model's service is reached. Try again later."},
	{ModelRefused, 502, 0, false, Server, "The model's service refused the request as invalid. Tell the operator, who finds the reason in the log."},
	{ModelKeyRefused, 502, 0, false, Server, "The model's service refused the key of this installation. Tell the operator, who has to replace it or allow it to use the model."},
	{ModelNotFound, 502, 0, false, Server, "The model's service does not have the model. Choose another one, or tell the operator to check its name and the service's address."},
	{ModelInputTooLong, 413, 0, false, Client, "The conversation is too long for the model. Send less at once, or start a new session."},
	{ModelContentRefused, 422, 0, false, Client, "The content policy of the model's service refused the request. Say it differently."},
	{ModelOutOfQuota, 502, 0, false, Server, "The account of this installation at the model's service is used up. Tell the operator, who has to pay in or raise its limit."},
	{ModelCutOff, 502, 0, true, Provider, "The answer of the model's service broke off before its end. Send the message again."},
	{ModelBadReply, 502, 0, true, Provider, "The model's service sent an answer that cannot be understood. Try again."},
	{ModelNoAnswer, 502, 0, true, Provider, "The model gave no answer. Say it differently, or choose another model."},
	{ModelTimeout, 504, 0, true, Provider, "The model's service did not answer in time. Try again later."},
	{ToolNotFound, 404, 0, false, Client, "This tool does not exist. Use one of the offered tools."},
	{ToolBadInput, 422, 0, false, Client, "The tool's arguments do not fit its schema. Correct them and call it again."},
	{ToolTimeout, 504, 0, true, Provider, "The tool did not answer in time. Try again later, or ask for less at once."},
	{ToolFailed, 502, 0, false, Provider, "The tool reported an error. Read what it says before you call it again."},
	{ToolLost, 502, 0, false, Provider, "The tool's server went away while the tool was running. Whether it had its effect is not known: check before you repeat it."},
	{ToolCancelled, 499, 0, false, Client, "The tool call was cancelled. Call it again if it is still wanted."},
	{ToolsDown, 503, 0, true, Server, "No tool service is running. Start one with the role tools."},
	{ToolsBusy, 429, 0, true, Client, "Your tenant has as many tool calls running as it may have at once, and nothing was run. Wait until one has ended, or ask the operator for more."},
	{SessionBusy, 409, 0, true, Client, "This session has an active run. Wait for its end, cancel it, or set on_busy to enqueue or interrupt."},
	{SessionExpired, 410, 0, false, Client, "This session does not exist or has expired. Create a new session."},
	{StateTampered, 422, 0, false, Client, "The signed state was changed, or signed with another key. Use one that this installation exported."},
	{StateExpired, 422, 0, false, Client, "The signed state is older than it may be. Export a new one, or create a new session."},
	{StateTooBig, 413, 0, false, Client, "The session's state is too large to be exported in one piece. Reconnect with your last seq instead."},
	{InputAnswered, 409, 0, false, Client, "This question has been answered before. Nothing was changed."},
	{InputNotFound, 422, 0, false, Client, "This session has no such question. Use the id with which it was asked."},
	{InputExpired, 408, 0, true, Client, "The question was not answered in time. Send the message again."},
	{InputRequired, 409, 0, false, Client, "The run waits for answers. Answer every open question, then go on."},
	{TaskNotFound, 404, 0, false, Client, "This run has no such task. Use an id of its tasks."},
	{PlanInvalid, 422, 0, true, Client, "This is not a list of tasks that can be solved. Correct it and send it again."},
	{PlanFailed, 502, 0, true, Provider, "No plan could be made of the request. Say it differently and send it again."},
	{TaskTimeout, 504, 0, true, Provider, "The task was not solved in time. Allow more time, or make it smaller."},
	{TasksFailed, 502, 0, true, Provider, "No task could be solved. See the error of each task and send the message again."},
	{TeamNotFound, 404, 4004, false, Client, "This team does not exist. Ask for the list of teams."},
	{TeamInvalid, 422, 0, false, Client, "A team cannot work by this definition. Correct it at the named place."},
	{TeamClosed, 410, 0, false, Client, "This team has been shut down. Create a new one."},
	{MemberNotFound, 404, 0, false, Client, "The team has no such member. Use the name of a member, or a path like node/member."},
	{ToolDenied, 403, 0, false, Client, "The tool call was not allowed. Do without it, or ask why."},
	{RunNotFound, 404, 4404, false, Client, "This id does not exist or cannot be watched. Check kind and id."},
	{RunOver, 409, 0, false, Client, "This run is not active. Nothing was changed."},
	{AgentNotFound, 404, 4004, false, Client, "This agent does not exist. Ask for the list of agents."},
	{AgentOffline, 503, 0, true, Server, "The agent is not connected and did not come in time. Try again later."},
	{AgentLost, 503, 0, true, Server, "The agents that had the task went away before it was done. Send it again."},
	{ClientNotFound, 404, 0, false, Client, "This client does not exist. Ask for the list of clients."},
	{ServiceNotFound, 404, 0, false, Client, "This service does not exist. Ask for the list of services."},
	{ServiceBusy, 503, 0, true, Provider, "The service takes no calls at the moment. Try again later."},
	{ServiceLost, 502, 0, false, Provider, "The service went away during the call. Whether it had its effect is not known: check before you repeat it."},
	{ServerNotFound, 404, 0, false, Client, "This MCP server does not exist. Ask for the list of servers."},
	{BadOutput, 502, 0, false, Provider, "The tool's answer does not fit its schema. Tell the operator of the tool."},
	{TaskNotOwned, 409, 0, false, Client, "This task is not yours: another agent has it. Drop it."},
	{TaskFinished, 409, 0, false, Client, "This task has ended. Nothing was changed."},
	{TaskOpen, 409, 0, false, Client, "This task has not ended. Wait for its end, or cancel it first."},
	{PayloadLost, 500, 0, false, Server, "The stored data of this message has expired or is damaged. Ask for it to be sent again."},
	{TooDeep, 422, 0, false, Client, "The task is nested too deeply, or would wait for itself. Solve it without another agent."},
	{NotRegistered, 409, 0, false, Client, "This connection is not registered. Register, then send it again."},
	{TaskFailed, 502, 0, false, Provider, "The agent could not do the task. See its error."},
	{NoSuchAgent, 503, 0, true, Server, "No agent with this capability is running. Start one, or leave the capability out."},
}
