package modeltest

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// ExerciseImages checks that an HTTP model provider gets the images of users and tools, and how a refusal is handled.
func ExerciseImages(t *testing.T, open func(model.Env) (model.Model, error)) {
	t.Helper()
	red, blue := model.Image{MediaType: "image/png", Data: "AAAA"}, model.Image{MediaType: "image/jpeg", Data: "BBBB"}
	call := []event.ToolCall{{ID: "c1", Name: "shoot", Arguments: []byte(`{}`)}, {ID: "c2", Name: "shoot", Arguments: []byte(`{}`)}}
	req := Ask("which colour?")
	req.Messages[0].Images = []model.Image{red}
	req.Messages = append(req.Messages,
		model.Message{Role: model.RoleAssistant, ToolCalls: call},
		model.Message{Role: model.RoleTool, ToolCallID: "c1", Content: "a shot", Images: []model.Image{blue}},
		model.Message{Role: model.RoleTool, ToolCallID: "c2", Content: "nothing"},
	)
	hello := scripted.Stream(scripted.Text("Hello"))
	refusal := scripted.Fail(http.StatusBadRequest, "invalid_request_error", "no images, please")

	t.Run("images are shown", func(t *testing.T) {
		m, srv := Serve(t, open, model.Env{}.With("anthropic", model.Access{Key: "test-key"}), scripted.Sequence(hello))
		r, err := Generate(t.Context(), t, m, req)
		require.NoError(t, err)
		require.Zero(t, r.Unseen)
		require.Equal(t, []model.Image{red, blue}, shown(srv.Exchanges()[0]))
		results := 0
		for _, msg := range srv.Exchanges()[0].Prompt.Messages {
			if msg.Role == model.RoleTool {
				results++
			} else if results > 0 {
				require.Equal(t, 2, results, "nothing comes between the results")
			}
		}
	})
	t.Run("a model that takes none is told of them", func(t *testing.T) {
		m, srv := Serve(t, open, model.Env{}.With("anthropic", model.Access{Key: "test-key"}), scripted.Sequence(refusal, hello, hello))
		r, err := Generate(t.Context(), t, m, req)
		require.NoError(t, err)
		require.Equal(t, "Hello", r.Text)
		require.Equal(t, 2, r.Unseen)
		require.Empty(t, shown(srv.Exchanges()[1]))
		require.Contains(t, srv.Exchanges()[1].Prompt.Messages[0].Content, "An image is left out here")
		_, err = Generate(t.Context(), t, m, req)
		require.NoError(t, err)
		require.Len(t, shown(srv.Exchanges()[2]), 2, "the reason may have been one of the images")
	})
	t.Run("a refusal for another reason", func(t *testing.T) {
		m, srv := Serve(t, open, model.Env{}.With("anthropic", model.Access{Key: "test-key"}), scripted.Always(refusal))
		_, err := Generate(t.Context(), t, m, req)
		require.ErrorIs(t, err, fault.New(fault.ModelRefused))
		require.Greater(t, len(srv.Exchanges()), 1)
	})
}

// shown are the images of a request.
func shown(x *scripted.Exchange) (out []model.Image) {
	for _, m := range x.Prompt.Messages {
		out = append(out, m.Images...)
	}
	return out
}
