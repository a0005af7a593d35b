package licence_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/licenseclassifier/v2/assets"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/deploy/supply/licence"
)

// TestForeignLicencesDoNotShip shows modules that may not ship.
func TestForeignLicencesDoNotShip(t *testing.T) {
	classify, err := licence.Classifier()
	require.NoError(t, err)
	module := func(files map[string]string) string {
		dir := t.TempDir()
		for name, text := range files {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		return dir
	}
	apache, err := os.ReadFile("../../../LICENSE")
	require.NoError(t, err)
	found, err := classify(module(map[string]string{"LICENSE": string(apache)}))
	require.NoError(t, err)
	require.Equal(t, []string{"Apache-2.0"}, found)

	gpl, err := assets.ReadLicenseFile("License/GPL-3.0/license.txt")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		files map[string]string
		err   string
	}{
		"no licence":       {map[string]string{"README.md": "a module"}, "found no licence"},
		"unknown":          {map[string]string{"LICENSE": "Ask the author before you use it."}, "LICENSE holds no known licence"},
		"copyleft":         {map[string]string{"COPYING": string(gpl)}, "GPL-3.0"},
		"a second licence": {map[string]string{"LICENSE": string(apache), "LICENSE.GPL": string(gpl)}, "GPL-3.0"},
		"a second text":    {map[string]string{"LICENSE": string(apache), "LICENSE-more.txt": "Ask."}, "LICENSE-more.txt holds no known licence"},
	} {
		_, err := classify(module(c.files))
		require.ErrorContains(t, err, c.err, name)
	}
}
