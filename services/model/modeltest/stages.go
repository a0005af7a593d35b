package modeltest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/prompt"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// form checks that the model requests the form from the provider, and that the provider's JSON is the text.
func (h HTTP) form(t *testing.T) {
	const said = `{"tasks":[{"id":"é","title":"\n"}]}`
	s := h.start(t, scripted.Always(scripted.Stream(scripted.Text(said[:5], said[5:]), scripted.Usage(1, 2))), model.Env{})
	req := Ask("hello")
	req.Tools, req.Schema = nil, prompt.PlanSchema()
	r := generate(t, s.m, req)
	require.Equal(t, said, r.Text)
	require.Empty(t, r.ToolCalls)
	require.Equal(t, model.StopEnd, r.StopReason)
	got := s.srv.Exchanges()[0].Prompt.Schema
	require.NotNil(t, got)
	require.Equal(t, req.Schema.Name, got.Name)
	require.JSONEq(t, string(req.Schema.JSON), string(got.JSON))
}
