package asp_test

import (
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/dialect/asp"
	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	wire "github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/command"
)

// settings are those of the description's examples.
var settings = asp.Settings{
	ServerVersion: "1.0.0", Heartbeat: 30 * time.Second, QueueTimeout: 30 * time.Second, TaskTimeout: 5 * time.Minute, MaxConcurrentTasks: 10,
}

// codecs are the three roles.
var codecs = map[string]dialect.Peers{
	command.PeerClient: asp.Client(settings), command.PeerAgent: asp.Agent(settings), command.PeerService: asp.Service(settings),
}

var types = map[string]wire.Types{command.PeerClient: wire.Client, command.PeerAgent: wire.Agent, command.PeerService: wire.Service}

func suite(t testing.TB, role string, accepted []string) dialecttest.PeerSuite {
	t.Helper()
	s := dialecttest.PeerSuite{
		Codec: codecs[role], Package: "github.com/waggle-dev/waggle/gateway/dialect/asp", Transcripts: "testdata/" + role,
		Schema: wire.Schema, Inbound: types[role].In, Aliases: types[role].Aliases, Outbound: types[role].Out,
		Accepted: accepted, Unsaid: unsaid, NoLog: role != command.PeerClient,
	}
	if role != command.PeerAgent { // The description has no examples for agents.
		var err error
		s.Examples, err = fs.Sub(wire.Examples, "examples/"+role)
		require.NoError(t, err)
	}
	return s
}

// unsaid are members of the description's examples that no frame has. The schemas say why.
var unsaid = []string{"service.started content.estimatedDuration", "error content.stack"}

func TestClient(t *testing.T) {
	dialecttest.ExercisePeers(t, suite(t, command.PeerClient, clientAccepted))
}

func TestAgent(t *testing.T) {
	dialecttest.ExercisePeers(t, suite(t, command.PeerAgent, agentAccepted))
}

func TestService(t *testing.T) {
	dialecttest.ExercisePeers(t, suite(t, command.PeerService, serviceAccepted))
}

func FuzzClient(f *testing.F) {
	dialecttest.FuzzOrders(f, suite(f, command.PeerClient, clientAccepted))
}

func FuzzAgent(f *testing.F) { dialecttest.FuzzOrders(f, suite(f, command.PeerAgent, agentAccepted)) }

func FuzzService(f *testing.F) {
	dialecttest.FuzzOrders(f, suite(f, command.PeerService, serviceAccepted))
}

func FuzzClientEvents(f *testing.F) {
	dialecttest.FuzzPeerEncode(f, suite(f, command.PeerClient, nil))
}

func FuzzAgentEvents(f *testing.F) { dialecttest.FuzzPeerEncode(f, suite(f, command.PeerAgent, nil)) }

func FuzzServiceEvents(f *testing.F) {
	dialecttest.FuzzPeerEncode(f, suite(f, command.PeerService, nil))
}
