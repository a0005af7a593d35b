package mcp

import (
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The end of a program closes its pipes. Several goroutines may meet that first, and none of their errors is a reason.
func TestErrorsOfPipesThatEndWithTheProgram(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	_, broken := w.Write([]byte("x"))
	require.NoError(t, w.Close())
	for name, err := range map[string]error{
		"clean end": nil, "read": io.EOF, "write": broken, "second close": w.Close(), "in memory": io.ErrClosedPipe,
		"wrapped": fmt.Errorf("connection closed: %w", w.Close()),
	} {
		require.True(t, onlyEnd(err), "%s: %v", name, err)
	}
	require.False(t, onlyEnd(errors.New("message of 5 MiB is too large")))
}
