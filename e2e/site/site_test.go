//go:build site

package site

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
)

// together is how many pages are followed at once.
const together = "3"

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", together); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(process.Audit(m.Run()))
}

// TestPages follows every page of the site.
func TestPages(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	site := filepath.Join(root, "docs/site")
	err = filepath.WalkDir(site, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		name, err := filepath.Rel(site, path)
		if err != nil || filepath.Ext(path) != ".md" || name == "README.md" {
			return err
		}
		t.Run(strings.TrimSuffix(name, ".md"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			if strings.HasPrefix(string(text), "<!-- Generated") {
				return // the tests of its source have followed it
			}
			blocks, err := Parse(string(text))
			require.NoError(t, err)
			if len(blocks) > 0 {
				newPage(t, root).follow(blocks)
			}
		})
		return nil
	})
	require.NoError(t, err)
}
