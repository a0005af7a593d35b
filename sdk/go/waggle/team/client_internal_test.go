package team

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// TestATokenIsForTheCallThatIsShown, not for the one that the question claims.
func TestATokenIsForTheCallThatIsShown(t *testing.T) {
	shown := event.CallDigest("bank_pay", json.RawMessage(`{"amount":1}`))
	q := Payload{ToolName: "bank_pay", Arguments: json.RawMessage(`{ "amount": 1 }`), Token: json.RawMessage(`{"digest":"another","runVersion":1}`)}
	require.JSONEq(t, `{"runVersion":1,"digest":"`+shown+`"}`, string(q.shownToken()))
	for _, without := range []string{`{"runVersion":1}`, `null`, `7`} {
		q.Token = json.RawMessage(without)
		require.JSONEq(t, without, string(q.shownToken()), "of a question that is not about a call")
	}
}
