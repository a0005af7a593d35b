package demo_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/demo"
	"github.com/waggle-dev/waggle/services/model/modeltest"
)

// TestTheStoryIsToldSlowly: people can watch it come, and stop it.
func TestTheStoryIsToldSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		req := newChat(t, files()).req
		req.Messages = []model.Message{user("how do bees tell each other where the flowers are?")}
		began := time.Now()
		r, err := modeltest.Generate(t.Context(), t, demo.New(), req)
		require.NoError(t, err)
		require.Contains(t, r.Text, "waggle dance")
		n := len(strings.Fields(r.Text))
		require.GreaterOrEqual(t, time.Since(began), time.Duration(n)*50*time.Millisecond) // the bubble's time
		require.LessOrEqual(t, time.Since(began), 30*time.Second)

		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		began = time.Now()
		_, err = modeltest.Generate(ctx, t, demo.New(), req)
		require.Error(t, err)
		require.Equal(t, time.Second, time.Since(began))
	})
}
