package ws

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// clientFrame returns a frame as clients send it, masked with zeros.
func clientFrame(final bool, op byte, payload int) []byte {
	b := []byte{op}
	if final {
		b[0] |= 0x80
	}
	b = appendHeader(b[:0], b[0], payload)
	b[1] |= 0x80
	return append(append(b, 0, 0, 0, 0), make([]byte, payload)...)
}

// Cut anywhere, the bytes of a peer count the same.
func TestFragmentsAreCountedWhereverReadsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f fragments
		want := 0
		for range rapid.IntRange(1, 20).Draw(t, "frames") {
			op, final := byte(0), rapid.Bool().Draw(t, "final")
			control := rapid.Bool().Draw(t, "control")
			if control {
				op, final = 9, true
			}
			p := clientFrame(final, op, rapid.SampledFrom([]int{0, 1, 125, 126, 127, 65535, 65536, 70000}).Draw(t, "payload"))
			switch {
			case control:
			case final:
				want = 0
			default:
				want++
			}
			for len(p) > 0 {
				n := rapid.IntRange(1, len(p)).Draw(t, "read")
				require.True(t, f.take(p[:n]))
				p = p[n:]
			}
		}
		require.Equal(t, want, f.count)
		require.Zero(t, f.payload)
		require.Zero(t, f.have)
	})
}

func TestTooManyFragmentsAreTooMany(t *testing.T) {
	var f fragments
	for range maxFragments {
		require.True(t, f.take(clientFrame(false, 0, 0)))
		require.True(t, f.take(clientFrame(true, 9, 0)), "control frames do not count")
	}
	require.True(t, f.take(clientFrame(true, 0, 0)), "the last one ends the message")
	for range maxFragments {
		require.True(t, f.take(clientFrame(false, 0, rand.IntN(10))))
	}
	require.False(t, f.take(clientFrame(false, 0, 0)))
}
