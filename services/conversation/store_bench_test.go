package conversation_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation"
)

// BenchmarkStore stores the state of a long chat as snapshots do.
func BenchmarkStore(b *testing.B) {
	w := longChat(b)
	for b.Loop() {
		raw, err := w.state.Store()
		require.NoError(b, err)
		b.ReportMetric(float64(len(raw)), "bytes")
	}
}

// BenchmarkLoad loads it again.
func BenchmarkLoad(b *testing.B) {
	raw := storedOf(b, &longChat(b).state)
	for b.Loop() {
		_, err := conversation.Load(raw)
		require.NoError(b, err)
	}
}

// BenchmarkFold folds the log of a long chat.
func BenchmarkFold(b *testing.B) {
	events := longChat(b).log
	b.ReportAllocs()
	for b.Loop() {
		foldOf(b, events, 0)
	}
}

func longChat(b *testing.B) *world {
	b.Helper()
	w := newWorld(b)
	w.append("created", event.SessionCreatedData{Dialect: "orbit", Principal: "alice"})
	for n := range 2000 {
		w.chat(n, "what is 2+3?", strings.Repeat("five ", 20))
	}
	return w
}
