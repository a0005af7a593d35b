package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOpen: the browser gets the address of a console that is there, and an address without one is named.
func TestOpen(t *testing.T) {
	t.Parallel()
	i := start(t)
	bin := filepath.Join(i.dir, "bin")
	require.NoError(t, os.Mkdir(bin, 0o700))
	opened := filepath.Join(i.dir, "opened")
	require.NoError(t, os.WriteFile(filepath.Join(bin, "xdg-open"), []byte("#!/bin/sh\necho noise; echo \"$1\" >"+opened+"\n"), 0o700))
	out, err := i.run(t, `PATH="`+bin+`:$PATH" waggle open`)
	require.NoError(t, err, out)
	require.Equal(t, "http://"+i.addr+"/\n", out)
	got, err := os.ReadFile(opened)
	require.NoError(t, err)
	require.Equal(t, out, string(got))

	require.NoError(t, os.WriteFile(filepath.Join(bin, "xdg-open"), []byte("#!/bin/sh\nexit 3\n"), 0o700))
	out, err = i.run(t, `PATH="`+bin+`:$PATH" waggle open`)
	require.Error(t, err)
	require.Contains(t, out, "open the address yourself")

	out, err = i.run(t, "waggle open --addr 127.0.0.1:1")
	require.Error(t, err)
	require.Contains(t, out, `start it with "waggle up"`)
}
