package proof

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/proto-schemas/asp"
)

// Roles of the Agent Swarm Protocol. Each has its own path.
const (
	RoleClient  = "client"
	RoleAgent   = "agent"
	RoleService = "service"
)

// The end-to-end tests that show the messages of the swarm.
const (
	testSwarmClients  = "TestClientsOfASwarm"
	testSwarmAgents   = "TestAgentsOfASwarm"
	testSwarmServices = "TestServicesOfASwarm"
	testSwarmTask     = "TestATaskWithEverything"
)

// SwarmMessage is a message of the Agent Swarm Protocol in one direction.
type SwarmMessage struct {
	Role string
	To   bool // the server sends it
	Type string
}

// String is how the witness calls it.
func (m SwarmMessage) String() string {
	if m.To {
		return m.Role + " is sent " + m.Type
	}
	return m.Role + " sends " + m.Type
}

// SwarmMessages returns every message of every role, by all of their names.
func SwarmMessages() []SwarmMessage {
	var out []SwarmMessage
	for _, r := range []struct {
		role  string
		types asp.Types
	}{{RoleClient, asp.Client}, {RoleAgent, asp.Agent}, {RoleService, asp.Service}} {
		for _, t := range append(slices.Clone(r.types.In), slices.Sorted(maps.Keys(r.types.Aliases))...) {
			out = append(out, SwarmMessage{Role: r.role, Type: t})
		}
		for _, t := range r.types.Out {
			out = append(out, SwarmMessage{Role: r.role, To: true, Type: t})
		}
	}
	return out
}

// SwarmProof returns the end-to-end test that shows each message, by its String. The
// test fails if it does not. docs/generated/asp-messages.md shows the list.
func SwarmProof() map[string]string {
	proof := map[string]string{}
	everything := map[SwarmMessage]bool{}
	for role, types := range inEverything {
		for _, t := range types {
			kind, to := strings.CutPrefix(t, "<")
			everything[SwarmMessage{role, to, kind}] = true
		}
	}
	rest := map[string]string{RoleClient: testSwarmClients, RoleAgent: testSwarmAgents, RoleService: testSwarmServices}
	for _, m := range SwarmMessages() {
		if proof[m.String()] = rest[m.Role]; everything[m] {
			proof[m.String()] = testSwarmTask
		}
	}
	return proof
}

// inEverything is what the task with everything shows; < marks what is sent to a participant.
var inEverything = map[string][]string{
	RoleClient: {
		asp.AgentListRequest, asp.TaskCreateRequest, asp.TaskMessage, "<" + asp.ClientWelcome, "<" + asp.AgentListResponse,
		"<" + asp.TaskCreateResponse, "<" + asp.TaskResult, "<" + asp.TaskNotification, "<" + asp.TaskRequestMessage, "<" + asp.TaskMessageSent,
		"<" + asp.ChildTaskCreated, "<" + asp.ChildTaskStatus, "<" + asp.ServiceStarted, "<" + asp.ServiceNotified, "<" + asp.ServiceCompleted,
		"<" + asp.MCPTaskExecution,
	},
	RoleAgent: {
		asp.AgentRegister, asp.AgentTaskResult, asp.TaskStatus, asp.TaskRequestMessage, asp.TaskNotification, asp.ServiceExecute,
		asp.AgentRequest, asp.ToolExecute, "<" + asp.Welcome, "<" + asp.AgentRegistered, "<" + asp.TaskExecute, "<" + asp.TaskMessageResponse,
		"<" + asp.TaskMessageReceived, "<" + asp.ServiceExecuteReply, "<" + asp.ServiceNotified, "<" + asp.ChildAccepted,
		"<" + asp.ChildResponse, "<" + asp.ToolExecuteReply,
	},
	RoleService: {
		asp.ServiceRegister, asp.ServiceTaskResult, asp.ServiceTaskNotification, "<" + asp.Welcome, "<" + asp.ServiceRegistered,
		"<" + asp.ServiceExecute, "<" + asp.NotificationReceived,
	},
}

const swarmPageIntro = `# The messages of the Agent Swarm Protocol, and the tests that show them

<!-- Generated from e2e/harness/proof by "make generate". Do not edit. -->

Each message, by each of its names, is sent, or taken, by a real run of real processes over real sockets in the named
end-to-end test, which fails if it is not. Every frame in those tests has to fit the message's JSON Schema.

| Role | Message | Direction | Test |
|---|---|---|---|
`

// SwarmPage returns the page that lists SwarmProof.
func SwarmPage() string {
	var b strings.Builder
	b.WriteString(swarmPageIntro)
	proof := SwarmProof()
	for _, m := range SwarmMessages() {
		direction := "from the " + m.Role
		if m.To {
			direction = "to the " + m.Role
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | `%s` |\n", m.Role, m.Type, direction, proof[m.String()])
	}
	return b.String()
}

var swarmRecord = record{proof: SwarmProof(), seen: map[string]map[string]bool{}}

// swarmFits says whether a frame fits the schema of its message, by the group of the
// schema.
var swarmFits = sync.OnceValues(func() (map[string]func(string, []byte) error, error) {
	out := map[string]func(string, []byte) error{}
	for _, role := range []string{RoleClient, RoleAgent, RoleService} {
		for _, direction := range []string{"in", "out"} {
			group := role + "." + direction
			var err error
			if out[group], err = dialecttest.Checker(asp.Schema, group); err != nil {
				return nil, fmt.Errorf("schemas of %s: %w", group, err)
			}
		}
	}
	return out, nil
})

// SwarmReceived notes a frame that a participant got, and checks it.
func SwarmReceived(t testing.TB, role, kind string, raw []byte) {
	swarmRecord.saw(t, SwarmMessage{role, true, kind}.String())
	swarmCheck(t, role+".out", kind, raw)
}

// SwarmSent notes a frame that a participant sent, and checks it.
func SwarmSent(t testing.TB, role, kind string, raw []byte) {
	swarmRecord.saw(t, SwarmMessage{role, false, kind}.String())
	swarmCheck(t, role+".in", kind, raw)
}

// swarmCheck may be called on any goroutine.
func swarmCheck(t testing.TB, group, kind string, raw []byte) {
	all, err := swarmFits()
	if assert.NoError(t, err) {
		assert.NoError(t, all[group](kind, raw), "%s", raw)
	}
}
