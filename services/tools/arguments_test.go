package tools_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/tools"
)

func TestArgumentsOfToolsThatOthersRun(t *testing.T) {
	s, err := tools.CompileSchema(json.RawMessage(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`))
	require.NoError(t, err)
	require.NoError(t, s.Check(json.RawMessage(`{"n":1}`)))
	err = s.Check(json.RawMessage(`{"n":"one"}`))
	require.ErrorIs(t, err, fault.New(fault.ToolBadInput))
	require.ErrorContains(t, err, "/n")
	require.ErrorIs(t, s.Check(nil), fault.New(fault.ToolBadInput), "left out is an empty object")
	for _, bad := range []string{`{"type":`, `{"$ref":"http://example.com/schema"}`} {
		_, err := tools.CompileSchema(json.RawMessage(bad))
		require.Error(t, err)
	}
}
