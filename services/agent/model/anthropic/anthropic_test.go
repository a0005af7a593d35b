package anthropic_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/services/agent/model"
	"github.com/waggle-dev/waggle/services/agent/model/anthropic"
	"github.com/waggle-dev/waggle/services/agent/model/modeltest"
	"github.com/waggle-dev/waggle/services/agent/model/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	modeltest.ExerciseHTTP(t, modeltest.HTTP{
		Protocol: scripted.Anthropic,
		Open:     func(env model.Env) (model.Model, error) { return anthropic.New("x", env) },
	})
}
