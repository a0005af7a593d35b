//go:build compose

package compose_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/verify"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

// TestABackupOfTheFleetIsRestored: the two commands of the page, while the fleet works and
// into one that has lost all its data. A session continues with what it had; a fleet that
// has data is not written over.
func TestABackupOfTheFleetIsRestored(t *testing.T) {
	for _, tool := range tools(t) {
		t.Run(tool[len(tool)-1], func(t *testing.T) {
			f := start(t, tool)
			d := f.talk(0)
			d.Once()
			seen, raw := d.Seq(), d.Raw()
			f.backup("save", "copies/one")
			d.Once() // is in no backup

			info, err := os.Stat(filepath.Join(f.dir, "copies", "one"))
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), "what was said is for its owner")
			require.Contains(t, f.fails(f.script("backup.sh"), "restore", "copies/one"), "make down")
			f.compose("down", "--timeout", "40")
			require.Contains(t, f.fails(f.script("backup.sh"), "restore", "copies/one"), "not empty")
			require.Contains(t, f.fails(f.script("backup.sh"), "restore", "copies"), "manifest.json")

			f.compose("down", "-v")
			f.backup("restore", "copies/one")
			f.up()
			late := verify.Converse(t, sdk.Options{URL: f.url("/ws/session"), Token: f.token, Session: d.Session()})
			late.UntilSeq(seen)
			require.True(t, slices.Equal(raw, late.Raw()), "the session is what it was at the backup")
			late.Once()
		})
	}
}

func (f *fleet) script(name string) string { return filepath.Join(f.root, "scripts", name) }

func (f *fleet) backup(args ...string) { f.run(f.script("backup.sh"), args...) }
