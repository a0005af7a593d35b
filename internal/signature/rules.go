package signature

import (
	"strings"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// maxAge bounds the time between the signing of a command and its arrival on the bus, in either direction: far more than
// a gateway spends on sending it again. An older signature, taken from a log, is worthless even where the log no longer
// shows that the command was handled.
const maxAge = 5 * time.Minute

// Reasons why a command is refused.
var (
	errUnsigned = fault.Newf(fault.Forbidden, "The command acts for a person but has no valid signature of a gateway.")
	errStale    = fault.Newf(fault.Forbidden, "The signature of the command is outside of the accepted time window.")
	errForeign  = fault.Newf(fault.Forbidden, "The command names no person, but its target belongs to one.")
)

// AssistantSessions begins the id of each session in which the built-in agent does a task. It writes there in its own name, for the owner of the task.
const AssistantSessions = "task-"

// own reports whether a service may send the unsigned command in its own name.
type own func(command.Command) bool

func never(command.Command) bool { return false }

// service accepts commands that name no person.
func service(c command.Command) bool { return c.Principal == "" }

// assistant accepts commands of the built-in agent to its sessions.
func assistant(c command.Command) bool { return c.Principal == "" && ofAssistant(c.Key) }

// ofAssistant reports whether a session may be one of the built-in agent: an id that is too long is replaced by its hash.
func ofAssistant(session id.Entity) bool {
	return strings.HasPrefix(session.String(), AssistantSessions) || id.Hashed(session)
}

// nested accepts commands of a team to a team within it.
func nested(c command.Command) bool {
	_, ok := id.TeamOf(c.Key)
	return ok && c.Principal == ""
}

type address struct{ service, verb id.Name }

// people holds the commands that people send. Services alone send the others, as the bus' permissions enforce.
var people = map[address]own{
	{command.Session, command.Open}:   assistant,
	{command.Session, command.Close}:  assistant,
	{command.Session, command.Delete}: assistant,
	{command.Session, command.Ack}:    never,
	{command.Session, command.Import}: never,

	{command.Pipeline, command.SendMessage}: assistant,
	{command.Pipeline, command.Cancel}:      assistant,
	{command.Pipeline, command.Answer}:      never,
	{command.Pipeline, command.CancelStep}:  never,
	{command.Pipeline, command.RestartStep}: never,
	{command.Pipeline, command.CancelPlan}:  never,
	{command.Pipeline, command.Replan}:      never,

	{command.Member, command.SendMessage}: service,
	{command.Member, command.Cancel}:      service,
	{command.Member, command.Answer}:      never,

	{command.Team, command.SendMessage}: nested,
	{command.Team, command.Cancel}:      nested,
	{command.Team, command.Answer}:      never,
	{command.Team, command.PauseTeam}:   nested,
	{command.Team, command.ResumeTeam}:  nested,
	{command.Team, command.CloseTeam}:   nested,

	{command.Task, command.CancelTask}:  service,
	{command.Task, command.MessageTask}: never,
	{command.Task, command.AskTask}:     never,
	{command.Task, command.SpawnTask}:   never,
	{command.Task, command.CallTool}:    never,
	{command.Task, command.AckClient}:   never,
	{command.Task, command.ReportTask}:  service, // the built-in agent has no connection
	{command.Task, command.NotifyTask}:  service,
	{command.Task, command.FinishTask}:  service,
}

// derived holds the commands of people from which a service derives commands of the same person.
var derived = map[address]func(origin string, c command.Command) bool{
	{command.Team, command.SendMessage}: toMember,
	{command.Team, command.Cancel}:      toMember,
	{command.Team, command.Answer}: func(team string, c command.Command) bool {
		return toMember(team, c) || toAgent(team, c)
	},
	{command.Session, command.Delete}:  deletion,
	{command.Pipeline, command.Answer}: toAgent,
}

// toAgent reports whether an answer is handed on to an agent of the swarm that has asked. The task's log knows whose question
// it is.
func toAgent(_ string, c command.Command) bool {
	return c.Service == command.Task && c.Verb == command.MessageTask
}

// toMember reports whether a team hands its command on to one of its members.
func toMember(team string, c command.Command) bool {
	return (c.Service == command.Member || c.Service == command.Team) && below(team, c.Key)
}

// deletion reports whether the deletion of a session stops its tasks, or removes their sessions.
func deletion(_ string, c command.Command) bool {
	return c.Service == command.Task && c.Verb == command.CancelTask ||
		c.Service == command.Session && c.Verb == command.Delete && ofAssistant(c.Key)
}

// Check returns a fault for a command that speaks for a person without that person's signed command. now is the bus'
// clock, and accepted the time at which the bus stored the command, by the clock of one server. own is true for a
// command that a service sent in its own name: it may change nothing that belongs to a person.
func (v *Verifier) Check(c command.Command, accepted, now time.Time) (own bool, err error) {
	rule, sent := people[address{c.Service, c.Verb}]
	switch {
	case v != nil && v.unchecked, !sent:
		return false, nil
	case c.Signature != "":
		return false, v.fresh(c, accepted, now)
	case c.Origin != nil:
		if !v.follows(c) {
			return false, errUnsigned
		}
		return false, nil
	case rule(c):
		return true, nil
	}
	return false, errUnsigned
}

// Foreign returns the fault of a command that a service sent in its own name about something of a person.
func Foreign() error { return errForeign }

// fresh checks the command's own signature. One that is fresh now was fresh when the command arrived, whatever the clock
// of the server that stored it shows. That clock counts only for a command that had to wait.
func (v *Verifier) fresh(c command.Command, accepted, now time.Time) error {
	switch {
	case !v.Signed(c):
		return errUnsigned
	case now.Sub(c.Time).Abs() > maxAge && accepted.Sub(c.Time).Abs() > maxAge:
		return errStale
	}
	return nil
}

// follows reports whether the command follows from the signed one that it carries.
func (v *Verifier) follows(c command.Command) bool {
	o := c.Origin
	for from, fits := range derived {
		if from.service.String() != o.Service || from.verb.String() != o.Verb || !fits(o.Key, c) {
			continue
		}
		same := o.Service != command.Team.String() || o.Verb == c.Verb.String() || c.Service == command.Task
		return same && o.Principal == c.Principal && (o.Operator || !c.Operator) && v.Proves(c.Tenant, o)
	}
	return false
}
