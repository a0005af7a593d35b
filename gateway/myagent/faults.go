package myagent

import (
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// Recoveries: the reaction of a client to an error, in the protocol's words.
const (
	retry       = "retry"
	escalate    = "escalate"
	skip        = "skip"
	reconnect   = "reconnect"
	askUser     = "escalate_to_user"
	backOff     = "exponential_backoff"
	newSession  = "create_new_session"
	withState   = "reconnect_with_state"
	notInTable  = fault.Internal
	severeFault = "critical"
	mildFault   = "medium"
)

// verdict is how the protocol tells of a fault.
type verdict struct {
	event    string // of a frame of its own: a fault that is the updates about another event has that event's name
	code     string // metadata.error_code
	recovery string // metadata.recovery_action or recovery_strategy, as the event has it
}

// verdicts is the one table of error codes. It has an entry for every fault of the
// catalogue.
var verdicts = map[fault.Code]verdict{
	fault.InvalidField:  {wire.ErrorValidation, "ERR_VAL_001", askUser},
	fault.BadJSON:       {wire.ErrorValidation, "ERR_VAL_002", askUser},
	fault.UnknownType:   {wire.ErrorValidation, "ERR_VAL_003", askUser},
	fault.NotFound:      {wire.ErrorValidation, "ERR_VAL_004", askUser},
	fault.CursorInvalid: {wire.ErrorValidation, "ERR_VAL_005", askUser},
	fault.InputNotFound: {wire.ErrorValidation, "ERR_VAL_006", askUser},
	fault.TaskNotFound:  {wire.ErrorValidation, "ERR_VAL_007", askUser},
	fault.MessageTooBig: {wire.ErrorValidation, "ERR_VAL_008", askUser},
	fault.NotText:       {wire.ErrorValidation, "ERR_VAL_009", askUser},
	fault.BadUTF8:       {wire.ErrorValidation, "ERR_VAL_010", askUser},

	fault.RateLimited:    {wire.ErrorRateLimited, "ERR_RATE_001", backOff},
	fault.TooManySockets: {wire.ErrorRateLimited, "ERR_RATE_002", backOff},
	fault.QuotaExceeded:  {wire.ErrorRateLimited, "ERR_RATE_003", backOff},

	fault.SessionExpired:  {wire.ErrorRecoveryFailed, "SESSION_EXPIRED", newSession},
	fault.SessionNotFound: {wire.ErrorRecoveryFailed, "SESSION_EXPIRED", newSession},
	fault.SessionClosed:   {wire.ErrorRecoveryFailed, "SESSION_INACTIVE", newSession},
	fault.SessionDeleted:  {wire.ErrorRecoveryFailed, "SESSION_DELETED", newSession},
	fault.SessionExists:   {wire.ErrorRecoveryFailed, "SESSION_EXISTS", newSession},
	fault.StateTampered:   {wire.ErrorRecoveryFailed, "STATE_TAMPERED", newSession},
	fault.StateExpired:    {wire.ErrorRecoveryFailed, "STATE_EXPIRED", newSession},
	fault.StateTooBig:     {wire.ErrorRecoveryFailed, "STATE_TOO_BIG", withState},
	fault.HeadExpired:     {wire.ErrorRecoveryFailed, "HISTORY_EXPIRED", withState},

	fault.Internal:        {wire.SystemError, "SYS_001", retry},
	fault.BusUnavailable:  {wire.SystemError, "SYS_BUS_001", retry},
	fault.Overloaded:      {wire.SystemError, "SYS_LOAD_001", reconnect},
	fault.Draining:        {wire.SystemError, "SYS_DRAIN_001", reconnect},
	fault.TenantMoving:    {wire.SystemError, "SYS_CELL_001", reconnect},
	fault.CellUnavailable: {wire.SystemError, "SYS_CELL_002", reconnect},
	fault.HandshakeSlow:   {wire.SystemError, "ERR_CONN_001", reconnect},
	fault.MessageSlow:     {wire.SystemError, "ERR_CONN_002", reconnect},
	fault.PeerSilent:      {wire.SystemError, "ERR_CONN_003", reconnect},
	fault.PeerStuck:       {wire.SystemError, "ERR_CONN_004", reconnect},
	fault.Unauthenticated: {wire.SystemError, "ERR_AUTH_001", escalate},
	fault.Expired:         {wire.SystemError, "ERR_AUTH_002", escalate},
	fault.Forbidden:       {wire.SystemError, "ERR_AUTH_003", escalate},
	fault.OriginRefused:   {wire.SystemError, "ERR_AUTH_004", escalate},
	fault.HostRefused:     {wire.SystemError, "ERR_AUTH_005", escalate},

	fault.SessionBusy:         {wire.AgentError, "SESSION_BUSY", retry},
	fault.QueueFull:           {wire.AgentError, "QUEUE_FULL", retry},
	fault.InputAnswered:       {wire.AgentError, "INPUT_ANSWERED", skip},
	fault.PlanInvalid:         {wire.AgentError, "COERCE_001", retry},
	fault.TaskTimeout:         {wire.AgentError, "ERR_TIMEOUT_001", retry},
	fault.ModelTimeout:        {wire.AgentError, "ERR_TIMEOUT_002", retry},
	fault.ToolTimeout:         {wire.AgentError, "ERR_TIMEOUT_003", retry},
	fault.InputExpired:        {wire.AgentError, "ERR_TIMEOUT_004", retry},
	fault.InputRequired:       {wire.AgentError, "INPUT_REQUIRED", escalate},
	fault.RunOver:             {wire.AgentError, "RUN_OVER", skip},
	fault.AttemptsOver:        {wire.AgentError, "AGENT_001", retry},
	fault.TurnLimit:           {wire.AgentError, "AGENT_002", escalate},
	fault.BudgetExceeded:      {wire.AgentError, "AGENT_009", escalate},
	fault.RunCancelled:        {wire.AgentError, "AGENT_003", retry},
	fault.TasksFailed:         {wire.AgentError, "AGENT_004", retry},
	fault.PlanFailed:          {wire.AgentError, "AGENT_005", retry},
	fault.NoSuchAgent:         {wire.AgentError, "AGENT_006", escalate},
	fault.ModelFailed:         {wire.AgentError, "AGENT_MODEL_001", retry},
	fault.ModelBusy:           {wire.AgentError, "AGENT_MODEL_002", retry},
	fault.ModelRateLimited:    {wire.AgentError, "AGENT_MODEL_013", retry},
	fault.ModelRefused:        {wire.AgentError, "AGENT_MODEL_003", escalate},
	fault.ModelBadReply:       {wire.AgentError, "AGENT_MODEL_004", retry},
	fault.ModelKeyRefused:     {wire.AgentError, "AGENT_MODEL_005", escalate},
	fault.ModelNotFound:       {wire.AgentError, "AGENT_MODEL_006", escalate},
	fault.ModelInputTooLong:   {wire.AgentError, "AGENT_MODEL_007", escalate},
	fault.ModelContentRefused: {wire.AgentError, "AGENT_MODEL_008", escalate},
	fault.ModelOutOfQuota:     {wire.AgentError, "AGENT_MODEL_009", escalate},
	fault.ModelCutOff:         {wire.AgentError, "AGENT_MODEL_010", retry},
	fault.ModelNoAnswer:       {wire.AgentError, "AGENT_MODEL_011", escalate},
	fault.ToolNotFound:        {wire.AgentError, "AGENT_TOOL_001", skip},
	fault.ToolBadInput:        {wire.AgentError, "AGENT_TOOL_002", skip},
	fault.ToolFailed:          {wire.AgentError, "AGENT_TOOL_003", skip},
	fault.ToolLost:            {wire.AgentError, "AGENT_TOOL_004", escalate},
	fault.ToolCancelled:       {wire.AgentError, "AGENT_TOOL_005", retry},
	fault.ToolsDown:           {wire.AgentError, "AGENT_TOOL_006", retry},
	fault.ToolsBusy:           {wire.AgentError, "AGENT_TOOL_013", retry},
	fault.ServiceNotFound:     {wire.AgentError, "AGENT_TOOL_007", skip},
	fault.ServiceBusy:         {wire.AgentError, "AGENT_TOOL_008", retry},
	fault.ServiceLost:         {wire.AgentError, "AGENT_TOOL_009", escalate},
	fault.ServerNotFound:      {wire.AgentError, "AGENT_TOOL_010", skip},
	fault.BadOutput:           {wire.AgentError, "AGENT_TOOL_011", skip},

	// Of teams, and of what is watched.
	fault.RunNotFound:      {wire.ErrorValidation, "ERR_VAL_011", askUser},
	fault.MethodNotAllowed: {wire.ErrorValidation, "ERR_VAL_012", askUser},
	fault.MediaType:        {wire.ErrorValidation, "ERR_VAL_013", askUser},
	fault.TeamNotFound:     {wire.AgentError, "AGENT_TEAM_001", escalate},
	fault.TeamInvalid:      {wire.AgentError, "AGENT_TEAM_002", escalate},
	fault.TeamClosed:       {wire.AgentError, "AGENT_TEAM_003", escalate},
	fault.MemberNotFound:   {wire.AgentError, "AGENT_TEAM_004", skip},
	fault.ToolDenied:       {wire.AgentError, "AGENT_TOOL_012", skip},

	// Of agents of the swarm that solve tasks of a session.
	fault.AgentNotFound:  {wire.AgentError, "AGENT_SWARM_001", escalate},
	fault.AgentOffline:   {wire.AgentError, "AGENT_SWARM_002", retry},
	fault.AgentLost:      {wire.AgentError, "AGENT_SWARM_003", retry},
	fault.TaskFailed:     {wire.AgentError, "AGENT_SWARM_004", skip},
	fault.TaskNotOwned:   {wire.AgentError, "AGENT_SWARM_005", skip},
	fault.TaskFinished:   {wire.AgentError, "AGENT_SWARM_006", skip},
	fault.TaskOpen:       {wire.AgentError, "AGENT_SWARM_012", skip},
	fault.TooDeep:        {wire.AgentError, "AGENT_SWARM_008", skip},
	fault.NotRegistered:  {wire.AgentError, "AGENT_SWARM_009", skip},
	fault.ClientNotFound: {wire.AgentError, "AGENT_SWARM_010", skip},
	fault.PayloadLost:    {wire.AgentError, "AGENT_SWARM_011", retry},
}

// trouble is a fault with what is known of its circumstances.
type trouble struct {
	*fault.Fault
	where     wire.Context
	operation string
	details   *wire.ErrorContext
}

// severity is critical where nothing can be done until the operator has looked.
func severity(code fault.Code) string {
	if code == fault.Internal || code == fault.BusUnavailable {
		return severeFault
	}
	return mildFault
}

// operations are the actions in the words of the protocol. Actions without a request have
// none.
var operations = map[Action]string{
	Open: "create_session", Resume: "reconnect_with_state", Import: "reconnect_with_state",
	Ack: "ack", Export: "request_state",
}

// recoveryAction says with the words of agent.error what a client can do.
func recoveryAction(recovery string) string {
	switch recovery {
	case retry, skip, escalate:
		return recovery
	case reconnect, withState, backOff:
		return retry
	}
	return escalate
}
