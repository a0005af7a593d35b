package schema_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/tools/schema"
)

func TestArgumentsOfToolsThatOthersRun(t *testing.T) {
	s, err := schema.Compile(json.RawMessage(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`))
	require.NoError(t, err)
	require.NoError(t, check(s, json.RawMessage(`{"n":1}`)))
	err = check(s, json.RawMessage(`{"n":"one"}`))
	require.ErrorIs(t, err, fault.New(fault.ToolBadInput))
	require.ErrorContains(t, err, "/n")
	require.ErrorIs(t, check(s, nil), fault.New(fault.ToolBadInput), "left out is an empty object")
}

func check(s *schema.Schema, arguments json.RawMessage) error {
	_, err := s.Arguments(arguments)
	return err
}
