package anthropic_test

import (
	"testing"

	"github.com/waggle-dev/waggle/services/model/modeltest"
)

func TestImages(t *testing.T) { modeltest.ExerciseImages(t, open) }
