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
	SessionExists       Code = "SESSION_EXISTS"
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
	{Internal, 500, 0, true, Server, "Internal error. Try again; if it persists, give the reference to the operator."},
	{BusUnavailable, 503, 0, true, Server, "The message bus cannot be reached, and nothing was accepted. Try again in a few seconds."},
	{Overloaded, 503, 1013, true, Server, "The server has no room for more connections. Try again later."},
	{Draining, 503, 1012, true, Server, "This gateway is restarting. Reconnect and resume with your last seq."},
	{TenantMoving, 503, 1012, true, Server, "Your data is moving to another cell. Reconnect in a few seconds and resume with your last seq."},
	{CellUnavailable, 503, 1013, true, Server, "The cell with your data cannot be reached, and nothing was accepted. Try again in a few seconds."},
	{RateLimited, 429, 0, true, Client, "Too many messages. Send fewer per second and try again."},
	{TooManySockets, 429, 1013, true, Client, "Too many connections from one address or principal. Close some and try again."},
	{QuotaExceeded, 429, 1013, true, Client, "Your quota or your tenant's quota is used up. Wait until part of it is free, or ask the operator for a larger one."},
	{BudgetExceeded, 402, 0, false, Client, "The run has used up its budget. Ask for less at a time, or ask the operator for a larger budget."},
	{Unauthenticated, 401, 4401, false, Client, "Credentials are missing or not valid. Send an API key or token."},
	{Expired, 401, 4401, false, Client, "Your credentials have expired. Get new ones and reconnect with your last seq."},
	{Forbidden, 403, 4403, false, Client, "You are not allowed to do this. Ask the operator for the permission."},
	{OriginRefused, 403, 0, false, Client, "This page's origin is not allowed. Add it to gateway.allowed_origins."},
	{HostRefused, 421, 0, false, Client, "This host name is not served here. Add it to gateway.allowed_hosts."},
	{HandshakeSlow, 408, 1008, true, Client, "No valid first message arrived in time. Reconnect."},
	{MessageSlow, 408, 1008, true, Client, "A message took too long to arrive. Reconnect and send it again."},
	{PeerSilent, 408, 4000, true, Client, "No heartbeat from the client. Reconnect and resume with your last seq."},
	{PeerStuck, 408, 4001, true, Client, "The client did not read for too long. Reconnect and resume with your last seq."},
	{MessageTooBig, 413, 1009, false, Client, "The message is larger than the limit. Send less at a time."},
	{NotText, 415, 1003, false, Client, "Binary frames are not supported. Send JSON as text."},
	{MediaType, 415, 0, false, Client, "The body is not declared as JSON. Send the header Content-Type: application/json."},
	{BadUTF8, 400, 1007, false, Client, "The text is not valid UTF-8. Encode it as UTF-8 and reconnect."},
	{BadJSON, 400, 0, false, Client, "The message is not valid JSON. Correct it and send it again."},
	{UnknownType, 400, 0, false, Client, "This message type is unknown. Send a type of the protocol."},
	{InvalidField, 422, 0, false, Client, "A field is missing or has a value that is not allowed. Correct it and send the message again."},
	{NotFound, 404, 0, false, Client, "This name does not exist. Check it."},
	{MethodNotAllowed, 405, 0, false, Client, "This method is not allowed here. Use one that the Allow header lists."},
	{SessionNotFound, 404, 4404, false, Client, "This session does not exist. Connect without a session to start a new one."},
	{SessionClosed, 410, 0, false, Client, "This session has ended. Connect without a session to start a new one."},
	{SessionDeleted, 410, 4410, false, Client, "This session and its data were deleted. Connect without a session to start a new one."},
	{SessionExists, 409, 0, false, Client, "This id belongs to another session. Use another id."},
	{QueueFull, 429, 0, true, Client, "Too many messages are waiting in this session. Wait for an answer, then send again."},
	{CursorInvalid, 422, 4422, false, Client, "after is not a position in this session. Use the seq of the last event you received."},
	{HeadExpired, 410, 0, false, Client, "Part of the history you asked for has expired. The rest follows."},
	{AttemptsOver, 500, 0, true, Server, "The answer could not be completed after several attempts. Send the message again."},
	{TurnLimit, 500, 0, false, Server, "The model used more tool rounds than allowed. Ask for less at a time."},
	{RunCancelled, 499, 0, true, Client, "The answer was stopped before it was complete. Send the message again to get it."},
	{ModelFailed, 502, 0, true, Provider, "The model provider failed. Try again later."},
	{ModelBusy, 503, 0, true, Provider, "The model provider is overloaded. Try again later."},
	{ModelRateLimited, 503, 0, true, Provider, "The model provider's rate limit was reached. Try again later."},
	{ModelRefused, 502, 0, false, Server, "The model provider rejected the request as invalid. Tell the operator, who can find the reason in the log."},
	{ModelKeyRefused, 502, 0, false, Server, "The model provider rejected this installation's API key. Ask the operator to replace it or to give it access to the model."},
	{ModelNotFound, 502, 0, false, Server, "The model provider does not have this model. Choose another one, or ask the operator to check the model's name and the provider's address."},
	{ModelInputTooLong, 413, 0, false, Client, "The conversation is too long for the model. Send less at a time, or start a new session."},
	{ModelContentRefused, 422, 0, false, Client, "The model provider's content policy rejected the request. Rephrase it."},
	{ModelOutOfQuota, 502, 0, false, Server, "This installation's account at the model provider has no credit left. Ask the operator to top it up or to raise its limit."},
	{ModelCutOff, 502, 0, true, Provider, "The model provider's answer ended early. Send the message again."},
	{ModelBadReply, 502, 0, true, Provider, "The model provider sent an invalid answer. Try again."},
	{ModelNoAnswer, 502, 0, true, Provider, "The model gave no answer. Rephrase your message, or choose another model."},
	{ModelTimeout, 504, 0, true, Provider, "The model provider did not answer in time. Try again later."},
	{ToolNotFound, 404, 0, false, Client, "This tool does not exist. Use one of the offered tools."},
	{ToolBadInput, 422, 0, false, Client, "The tool's arguments do not match its schema. Correct them and call it again."},
	{ToolTimeout, 504, 0, true, Provider, "The tool did not answer in time. Try again later, or ask for less at a time."},
	{ToolFailed, 502, 0, false, Provider, "The tool reported an error. Read the error before you call the tool again."},
	{ToolLost, 502, 0, false, Provider, "The tool server disconnected while the tool was running. The call may have taken effect: check before you repeat it."},
	{ToolCancelled, 499, 0, false, Client, "The tool call was cancelled. Call the tool again if you still need it."},
	{ToolsDown, 503, 0, true, Server, "No tool service is running. Start one with the role tools."},
	{ToolsBusy, 429, 0, true, Client, "Your tenant has reached its limit of running tool calls, and nothing was run. Wait until one ends, or ask the operator for a higher limit."},
	{SessionBusy, 409, 0, true, Client, "This session has an active run. Wait for it to end, cancel it, or set on_busy to enqueue or interrupt."},
	{SessionExpired, 410, 0, false, Client, "This session does not exist or has expired. Create a new session."},
	{StateTampered, 422, 0, false, Client, "The signed state was changed, or signed with another key. Use a state that this installation exported."},
	{StateExpired, 422, 0, false, Client, "The signed state is too old. Export a new one, or create a new session."},
	{StateTooBig, 413, 0, false, Client, "The session's state is too large to export. Reconnect with your last seq instead."},
	{InputAnswered, 409, 0, false, Client, "This question was already answered. Nothing was changed."},
	{InputNotFound, 422, 0, false, Client, "This session has no such question. Use the id from the question."},
	{InputExpired, 408, 0, true, Client, "The question was not answered in time. Send the message again."},
	{InputRequired, 409, 0, false, Client, "The run is waiting for answers. Answer every open question, then continue."},
	{TaskNotFound, 404, 0, false, Client, "This run has no such task. Use an id of its tasks."},
	{PlanInvalid, 422, 0, true, Client, "This plan cannot be carried out. Correct it and send it again."},
	{PlanFailed, 502, 0, true, Provider, "The request could not be turned into a plan. Rephrase it and send it again."},
	{TaskTimeout, 504, 0, true, Provider, "The task was not completed in time. Allow more time, or make it smaller."},
	{TasksFailed, 502, 0, true, Provider, "No step succeeded. Check the error of each step, then send the message again."},
	{TeamNotFound, 404, 4004, false, Client, "This team does not exist. Check the list of teams."},
	{TeamInvalid, 422, 0, false, Client, "The team definition is invalid. Correct the named field."},
	{TeamClosed, 410, 0, false, Client, "This team has been shut down. Create a new one."},
	{MemberNotFound, 404, 0, false, Client, "The team has no such member. Use the name of a member, or a path like node/member."},
	{ToolDenied, 403, 0, false, Client, "The tool call was not allowed. Continue without it, or ask why."},
	{RunNotFound, 404, 4404, false, Client, "This id does not exist or cannot be watched. Check kind and id."},
	{RunOver, 409, 0, false, Client, "This run is not active. Nothing was changed."},
	{AgentNotFound, 404, 4004, false, Client, "This agent does not exist. Check the list of agents."},
	{AgentOffline, 503, 0, true, Server, "The agent did not connect in time. Try again later."},
	{AgentLost, 503, 0, true, Server, "The agents with the task disconnected before it was done. Send the task again."},
	{ClientNotFound, 404, 0, false, Client, "This client does not exist. Check the list of clients."},
	{ServiceNotFound, 404, 0, false, Client, "This service does not exist. Check the list of services."},
	{ServiceBusy, 503, 0, true, Provider, "The service is not accepting calls. Try again later."},
	{ServiceLost, 502, 0, false, Provider, "The service disconnected during the call. The call may have taken effect: check before you repeat it."},
	{ServerNotFound, 404, 0, false, Client, "This MCP server does not exist. Check the list of servers."},
	{BadOutput, 502, 0, false, Provider, "The tool's result does not match its schema. Tell the operator of the tool."},
	{TaskNotOwned, 409, 0, false, Client, "This task is assigned to another agent. Stop working on it."},
	{TaskFinished, 409, 0, false, Client, "This task has ended. Nothing was changed."},
	{TaskOpen, 409, 0, false, Client, "This task is still open. Wait for it to end, or cancel it first."},
	{PayloadLost, 500, 0, false, Server, "The stored data of this message has expired or is damaged. Ask for it to be sent again."},
	{TooDeep, 422, 0, false, Client, "The task is nested too deeply, or would wait for itself. Do it without another agent."},
	{NotRegistered, 409, 0, false, Client, "This connection is not registered. Register, then send the message again."},
	{TaskFailed, 502, 0, false, Provider, "The agent failed to do the task. Check its error."},
	{NoSuchAgent, 503, 0, true, Server, "No agent with this capability is running. Start one, or omit the capability."},
}
