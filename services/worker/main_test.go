package worker_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
)

func TestMain(m *testing.M) {
	bustest.Waiting()
	goleak.VerifyTestMain(m, bustest.Leftovers()...)
}
