package proof

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/proto-schemas/team"
)

// The end-to-end tests that show the messages of the protocol of teams.
const testTeam = "TestATeamWithEverything"

// TeamProof returns the end-to-end test that shows each message of the protocol of
// teams, in its flattened form, by type. The test fails if it does not.
// docs/generated/team-messages.md shows the list.
func TeamProof() map[string]string {
	proof := map[string]string{}
	for _, list := range [][]string{team.Inbound, team.Outbound} {
		for _, kind := range list {
			proof[kind] = testTeam
		}
	}
	for _, name := range []string{team.EnvelopeSchema, team.StreamEventSchema} {
		proof[name] = testTeam
	}
	return proof
}

// TeamUnmade are the messages and kinds of segments of the original protocol that
// nothing makes, with the reason. A test that sees one fails.
var TeamUnmade = map[string]string{
	team.AssistantChunk:                "nothing in the original makes it either: a text is told in segments",
	"segment " + team.SegmentReasoning: "the reasoning of models is requested from no provider and kept in no log",
	"segment " + team.SegmentMedia:     "the built-in models write text only",
}

var teamRecord = record{proof: TeamProof(), seen: map[string]map[string]bool{}}

// enoughFrames of a type in one test are checked against its schema: more tell nothing
// new, and a test of load would measure the check.
const enoughFrames = 500

// teamSchemas check the messages of teams.
type teamSchemas struct{ in, out func(string, []byte) error }

var teamFits = sync.OnceValues(func() (s teamSchemas, err error) {
	if s.in, err = dialecttest.Checker(team.Schema, "in"); err != nil {
		return s, err
	}
	s.out, err = dialecttest.Checker(team.Schema, "out")
	return s, err
})

// TeamCounts says how many frames of a schema a watcher has checked.
type TeamCounts map[string]int

// Received notes a frame that a watcher was sent, and checks it. It may be called on any
// goroutine, but on one at a time for the same counts.
func (n TeamCounts) Received(t testing.TB, raw []byte) {
	var f struct {
		Type      string `json:"type"`
		EventType string `json:"event_type"`
		Source    string `json:"event_source_type"`
		Payload   struct {
			SegmentType string `json:"segment_type"`
		} `json:"payload"`
	}
	if !assert.NoError(t, json.Unmarshal(raw, &f), "%s", raw) {
		return
	}
	name := f.Type
	switch {
	case f.Source != "":
		name = team.EnvelopeSchema
	case f.EventType != "":
		name = team.StreamEventSchema
	}
	for _, is := range []string{name, "segment " + f.Payload.SegmentType} {
		assert.NotContains(t, TeamUnmade, is, "%s", raw)
	}
	teamRecord.saw(t, name)
	if n[name]++; n[name] > enoughFrames {
		return
	}
	if all, err := teamFits(); assert.NoError(t, err) {
		assert.NoError(t, all.out(name, raw), "%s", raw)
	}
}

// TeamSent notes a frame of a client, which has to fit its schema.
func TeamSent(t testing.TB, kind string, raw []byte) {
	teamRecord.saw(t, kind)
	if all, err := teamFits(); assert.NoError(t, err) {
		assert.NoError(t, all.in(kind, raw), "%s", raw)
	}
}
