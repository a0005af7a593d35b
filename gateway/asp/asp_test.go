package asp_test

import (
	"testing"
	"time"

	"github.com/waggle-dev/waggle/gateway/asp"
	wire "github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/command"
)

// settings are those of the description's examples.
var settings = asp.Settings{
	ServerVersion: "1.0.0", Heartbeat: 30 * time.Second, QueueTimeout: 30 * time.Second, TaskTimeout: 5 * time.Minute, MaxConcurrentTasks: 10,
}

// codecs are the three roles.
var codecs = map[string]*asp.Codec{
	command.ParticipantClient: asp.Client(settings), command.ParticipantAgent: asp.Agent(settings), command.ParticipantService: asp.Service(settings),
}

var types = map[string]wire.Types{command.ParticipantClient: wire.Client, command.ParticipantAgent: wire.Agent, command.ParticipantService: wire.Service}

func TestClient(t *testing.T) { exercise(t, command.ParticipantClient, clientAccepted) }

func TestAgent(t *testing.T) { exercise(t, command.ParticipantAgent, agentAccepted) }

func TestService(t *testing.T) { exercise(t, command.ParticipantService, serviceAccepted) }

func FuzzClient(f *testing.F) { fuzzOrders(f, command.ParticipantClient, clientAccepted) }

func FuzzAgent(f *testing.F) { fuzzOrders(f, command.ParticipantAgent, agentAccepted) }

func FuzzService(f *testing.F) { fuzzOrders(f, command.ParticipantService, serviceAccepted) }

func FuzzClientEvents(f *testing.F) { fuzzEvents(f, command.ParticipantClient) }

func FuzzAgentEvents(f *testing.F) { fuzzEvents(f, command.ParticipantAgent) }

func FuzzServiceEvents(f *testing.F) { fuzzEvents(f, command.ParticipantService) }
