package anthropic_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/modeltest"
	"github.com/waggle-dev/waggle/services/model/prompt"
)

// TestTheFormIsLeftToThePromptBesideTools: a model that must call one tool could not call the others.
func TestTheFormIsLeftToThePromptBesideTools(t *testing.T) {
	m, srv := start(t, begin, block, hi, end("end_turn"), stop)
	req := modeltest.Ask("hello")
	req.Schema = prompt.PlanSchema()
	r, err := modeltest.Generate(t.Context(), t, m, req)
	require.NoError(t, err)
	require.Equal(t, "Hi", r.Text)
	x := srv.Exchanges()[0]
	require.Nil(t, x.Prompt.Schema)
	require.Len(t, x.Prompt.Tools, len(req.Tools))
}

// TestAFormThatComesWhole: arguments in the start of the block are the text, too.
func TestAFormThatComesWhole(t *testing.T) {
	m, _ := start(t, begin,
		`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"plan","input":{"tasks":[]}}}`,
		end("tool_use"), stop)
	req := modeltest.Ask("hello")
	req.Tools, req.Schema = nil, prompt.PlanSchema()
	r, err := modeltest.Generate(t.Context(), t, m, req)
	require.NoError(t, err)
	require.Equal(t, `{"tasks":[]}`, r.Text)
	require.Equal(t, model.StopEnd, r.StopReason)
}
