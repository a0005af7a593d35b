package repocheck

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
)

// composeFile is what the checks need of docker-compose.yml.
type composeFile struct {
	Name     string `yaml:"name"`
	Services map[string]struct {
		Image    string   `yaml:"image"`
		Command  []string `yaml:"command"`
		Ports    []string `yaml:"ports"`
		Profiles []string `yaml:"profiles"`
		ReadOnly bool     `yaml:"read_only"`
		CapDrop  []string `yaml:"cap_drop"`
		Security []string `yaml:"security_opt"`
		Secrets  []any    `yaml:"secrets"`
		Networks []string `yaml:"networks"`
	} `yaml:"services"`
	Secrets map[string]struct {
		File string `yaml:"file"`
	} `yaml:"secrets"`
}

func readCompose(t *testing.T) composeFile {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(top(t), "docker-compose.yml"))
	require.NoError(t, err)
	var c composeFile
	require.NoError(t, yaml.Unmarshal(raw, &c))
	return c
}

// Every container may do as little as possible, and only the host itself reaches it.
func TestContainersAreHardened(t *testing.T) {
	c := readCompose(t)
	require.Empty(t, c.Name, "Debian's Compose refuses it")
	for name, s := range c.Services {
		require.True(t, s.ReadOnly, name)
		require.Equal(t, []string{"ALL"}, s.CapDrop, name)
		require.Equal(t, []string{"no-new-privileges:true"}, s.Security, name)
		require.NotEmpty(t, s.Networks, name)
		for _, p := range s.Ports {
			require.True(t, strings.HasPrefix(p, "127.0.0.1:"), "%s: %s", name, p)
		}
	}
}

// Every role has a service that runs it alone and holds no key but its own.
func TestEveryRoleHasAContainerWithItsOwnKey(t *testing.T) {
	c := readCompose(t)
	for _, role := range config.Roles {
		s, ok := c.Services[role]
		require.True(t, ok, "no service runs the role %s", role)
		require.Equal(t, []string{"serve", "--role", role}, s.Command)
		keys := 0
		for _, secret := range s.Secrets {
			m, ok := secret.(map[string]any)
			if !ok {
				continue
			}
			keys++
			require.Equal(t, map[string]any{"source": role + ".nk", "target": "nkey"}, m, role)
		}
		require.Equal(t, 1, keys, role)
		require.Contains(t, c.Secrets, role+".nk")
	}
	for name, s := range c.Secrets {
		require.True(t, strings.HasPrefix(s.File, "./secrets/"), name)
	}
}
