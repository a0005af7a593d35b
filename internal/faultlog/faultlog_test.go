package faultlog_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/faultlog"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

func TestOperatorsLearnWhatCallersDoNot(t *testing.T) {
	var out strings.Builder
	log := zerolog.New(&out)
	said := func(err error) (*fault.Fault, string) {
		out.Reset()
		f := faultlog.Public(&log, err, "fail")
		return f, out.String()
	}
	f, line := said(nil)
	require.Nil(t, f)
	require.Empty(t, line)

	f, line = said(errors.New("disk full"))
	require.Equal(t, fault.Internal, f.Code)
	require.NotContains(t, f.Public(), "disk")
	require.NotEmpty(t, f.Ref)
	require.Contains(t, line, `"error":"disk full","reference":"`+f.Ref+`","message":"fail"`)

	f, line = said(fault.New(fault.BusUnavailable).Wrap(errors.New("no leader")))
	require.NotContains(t, f.Public(), "leader")
	require.Contains(t, line, "no leader")
	require.Contains(t, line, `"level":"warn"`)

	for _, quiet := range []error{fault.New(fault.BusUnavailable), fault.New(fault.Forbidden).Wrap(errors.New("secret"))} {
		_, line = said(quiet)
		require.Empty(t, line, "another process has logged it, or its caller is to blame")
	}
	remote := fault.New(fault.Internal)
	remote.Ref = "elsewhere"
	_, line = said(remote)
	require.Empty(t, line)

	lines := 0
	for range 100 {
		if _, line = said(fault.New(fault.BusUnavailable).Wrap(errors.New("no leader"))); line != "" {
			lines++
		}
	}
	require.Less(t, lines, 50)
}
