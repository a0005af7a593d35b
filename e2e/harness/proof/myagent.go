package proof

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

// testFlows shows what is not a matter of time or of what dies.
const testFlows = "TestFlows"

// Proof names, for each event of the session protocol, the test in which a real run
// produces it, or consumes it if it comes from the client. The test fails if it
// does not. docs/generated/myagent-events.md shows the list.
var Proof = map[string]string{
	myagent.UserCreateSession:      testFlows,
	myagent.UserMessage:            testFlows,
	myagent.UserResponse:           testFlows,
	myagent.UserSolveTasks:         testFlows,
	myagent.UserCancel:             testFlows,
	myagent.UserCancelTask:         testFlows,
	myagent.UserRestartTask:        testFlows,
	myagent.UserCancelPlan:         testFlows,
	myagent.UserReplan:             testFlows,
	myagent.UserAck:                testFlows,
	myagent.UserReconnect:          "TestAClientComesBack",
	myagent.UserReconnectWithState: testFlows,
	myagent.UserRequestState:       testFlows,

	myagent.SystemConnected:     testFlows,
	myagent.AgentSessionCreated: testFlows,
	myagent.PlanStart:           testFlows,
	myagent.PlanCompleted:       testFlows,
	myagent.SolverStart:         testFlows,
	myagent.SolverProgress:      testFlows,
	myagent.SolverCompleted:     testFlows,
	myagent.AgentThinking:       testFlows,
	myagent.AgentToolCall:       testFlows,
	myagent.AgentToolResult:     testFlows,
	myagent.AgentPartialAnswer:  testFlows,
	myagent.AgentFinalAnswer:    testFlows,
	myagent.AggregateStart:      testFlows,
	myagent.AggregateCompleted:  testFlows,
	myagent.PipelineCompleted:   testFlows,
	myagent.SystemNotice:        testFlows,
	myagent.AgentUserConfirm:    testFlows,
	myagent.PlanCancelled:       testFlows,
	myagent.PlanCoercionError:   testFlows,
	myagent.ErrorTimeout:        testFlows,
	myagent.SolverCancelled:     testFlows,
	myagent.SolverRestarted:     testFlows,
	myagent.SolverStepFailed:    testFlows,
	myagent.ErrorExecution:      testFlows,
	myagent.ErrorRetryAttempt:   testFlows,
	myagent.SolverRetry:         "TestAWorkerIsKilledInTheMiddleOfAnAnswer",
	myagent.AgentTimeout:        "TestAModelThatDoesNotAnswer",
	myagent.AgentInterrupted:    testFlows,
	myagent.AgentSessionEnd:     testFlows,
	myagent.AgentStateExported:  testFlows,
	myagent.AgentStateRestored:  testFlows,
	myagent.SystemHeartbeat:     "TestAClientComesBack",
	myagent.AgentError:          testFlows,
	myagent.SystemError:         "TestWhatIsWrongIsSaid",
	myagent.ErrorValidation:     testFlows,
	myagent.ErrorRecoveryFailed: testFlows,
	myagent.ErrorRateLimited:    "TestWhatIsWrongIsSaid",
}

// Events returns every event of the session protocol, those of the client first.
func Events() []string {
	all := append([]string{}, myagent.Inbound...)
	for _, e := range myagent.Outbound {
		if e != myagent.UserMessage && e != myagent.UserSolveTasks { // echoes
			all = append(all, e)
		}
	}
	return all
}

// record notes which events each test has seen.
type record struct {
	proof map[string]string // event to test
	mu    sync.Mutex
	seen  map[string]map[string]bool // by test
}

var myAgentRecord = record{proof: Proof, seen: map[string]map[string]bool{}}

// saw notes an event of a test, and at the first one that the test has to show all
// that it is the proof of.
func (w *record) saw(t testing.TB, event string) {
	name, _, _ := strings.Cut(t.Name(), "/")
	w.begin(t, name)
	w.mu.Lock()
	defer w.mu.Unlock()
	if seen := w.seen[name]; seen != nil { // or it came when the test was over
		seen[event] = true
	}
}

// begin has a test show, by its end, all that it is the proof of.
func (w *record) begin(t testing.TB, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen[name] == nil {
		w.seen[name] = map[string]bool{}
		t.Cleanup(func() { w.check(t, name) })
	}
}

// MyAgentShows has a test show, together with its subtests, all events that it is the proof of.
func MyAgentShows(t testing.TB) { myAgentRecord.begin(t, t.Name()) }

func (w *record) check(t testing.TB, name string) {
	w.mu.Lock()
	seen := w.seen[name]
	delete(w.seen, name) // a test may run several times
	w.mu.Unlock()
	if t.Failed() {
		return
	}
	for event, test := range w.proof {
		if test == name {
			assert.True(t, seen[event], "%s is to show a real %s, and has seen none", name, event)
		}
	}
}

// fits says whether a frame of the server fits its schema.
var fits = sync.OnceValues(func() (func(string, []byte) error, error) { return dialecttest.Checker(myagent.Schema, "in", "out") })

// MyAgentReceived notes a frame of the server and requires that it fits its schema. It may be
// called on any goroutine.
func MyAgentReceived(t testing.TB, f sdk.Frame) bool {
	myAgentRecord.saw(t, f.Event)
	test, err := fits()
	if err != nil {
		return assert.NoError(t, err)
	}
	name := f.Event
	if strings.HasPrefix(name, "user.") {
		name += ".echo"
	}
	return assert.NoError(t, test(name, f.Raw), "%s", f.Raw)
}

// MyAgentSent notes a frame of the client and requires that it fits its schema.
func MyAgentSent(t testing.TB, event string, raw []byte) {
	t.Helper()
	myAgentRecord.saw(t, event)
	test, err := fits()
	require.NoError(t, err)
	require.NoError(t, test(event, raw), "%s", raw)
}
