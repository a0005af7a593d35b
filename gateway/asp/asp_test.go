package asp_test

import (
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/asp"
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	wire "github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/command"
)

// settings are those of the description's examples.
var settings = asp.Settings{
	ServerVersion: "1.0.0", Heartbeat: 30 * time.Second, QueueTimeout: 30 * time.Second, TaskTimeout: 5 * time.Minute, MaxConcurrentTasks: 10,
}

// codecs are the three roles.
var codecs = map[string]dialect.Participants{
	command.ParticipantClient: asp.Client(settings), command.ParticipantAgent: asp.Agent(settings), command.ParticipantService: asp.Service(settings),
}

var types = map[string]wire.Types{command.ParticipantClient: wire.Client, command.ParticipantAgent: wire.Agent, command.ParticipantService: wire.Service}

func suite(t testing.TB, role string, accepted []string) dialecttest.ParticipantSuite {
	t.Helper()
	s := dialecttest.ParticipantSuite{
		Codec: codecs[role], Package: "github.com/waggle-dev/waggle/gateway/asp", Transcripts: "testdata/" + role,
		Schema: wire.Schema, Inbound: types[role].In, Aliases: types[role].Aliases, Outbound: types[role].Out,
		Accepted: accepted, Unsaid: unsaid, NoLog: role != command.ParticipantClient,
	}
	if role != command.ParticipantAgent { // The description has no examples for agents.
		var err error
		s.Examples, err = fs.Sub(wire.Examples, "examples/"+role)
		require.NoError(t, err)
	}
	return s
}

// unsaid are members of the description's examples that no frame has. The schemas say why.
var unsaid = []string{"service.started content.estimatedDuration", "error content.stack"}

func TestClient(t *testing.T) {
	dialecttest.ExerciseParticipants(t, suite(t, command.ParticipantClient, clientAccepted))
}

func TestAgent(t *testing.T) {
	dialecttest.ExerciseParticipants(t, suite(t, command.ParticipantAgent, agentAccepted))
}

func TestService(t *testing.T) {
	dialecttest.ExerciseParticipants(t, suite(t, command.ParticipantService, serviceAccepted))
}

func FuzzClient(f *testing.F) {
	dialecttest.FuzzOrders(f, suite(f, command.ParticipantClient, clientAccepted))
}

func FuzzAgent(f *testing.F) {
	dialecttest.FuzzOrders(f, suite(f, command.ParticipantAgent, agentAccepted))
}

func FuzzService(f *testing.F) {
	dialecttest.FuzzOrders(f, suite(f, command.ParticipantService, serviceAccepted))
}

func FuzzClientEvents(f *testing.F) {
	dialecttest.FuzzParticipantEncode(f, suite(f, command.ParticipantClient, nil))
}

func FuzzAgentEvents(f *testing.F) {
	dialecttest.FuzzParticipantEncode(f, suite(f, command.ParticipantAgent, nil))
}

func FuzzServiceEvents(f *testing.F) {
	dialecttest.FuzzParticipantEncode(f, suite(f, command.ParticipantService, nil))
}
