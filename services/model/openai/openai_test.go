package openai_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/modeltest"
	"github.com/waggle-dev/waggle/services/model/openai"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(env model.Env) (model.Model, error) { return openai.New(openai.Standard, "x", env) }

func TestConformance(t *testing.T) {
	modeltest.ExerciseHTTP(t, modeltest.HTTP{Protocol: scripted.OpenAI, Open: open})
}
