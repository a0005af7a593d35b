package repocheck

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/keys"
)

// composeFile is the part of docker-compose.yml that the checks need.
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
		Volumes  []string `yaml:"volumes"`
		Networks []string `yaml:"networks"`
		Pids     int      `yaml:"pids_limit"`
		Memory   string   `yaml:"mem_limit"`
		// Environment is a map, or a list in some services.
		Environment yaml.Node `yaml:"environment"`
	} `yaml:"services"`
}

func readCompose(t *testing.T) composeFile {
	t.Helper()
	var c composeFile
	readYAML(t, "docker-compose.yml", &c)
	return c
}

// readYAML decodes a file of the repository.
func readYAML(t *testing.T, path string, v any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(top(t), path))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(raw, v))
}

// Every container has minimal rights, and only the host itself reaches it.
func TestContainersAreHardened(t *testing.T) {
	c := readCompose(t)
	require.Empty(t, c.Name, "Debian's Compose refuses it")
	for name, s := range c.Services {
		require.True(t, s.ReadOnly, name)
		require.Equal(t, []string{"ALL"}, s.CapDrop, name)
		require.Equal(t, []string{"no-new-privileges:true"}, s.Security, name)
		require.NotEmpty(t, s.Networks, name)
		require.Positive(t, s.Pids, name)
		require.LessOrEqual(t, s.Pids, 512, name)
		require.Regexp(t, `^\$\{WAGGLE_(NATS_)?MEM_LIMIT:-[12]g\}$`, s.Memory, name)
		for _, p := range s.Ports {
			require.True(t, strings.HasPrefix(p, "127.0.0.1:"), "%s: %s", name, p)
		}
	}
}

// Gateways believe the load balancer, whose network has no published gateway, about the addresses of clients: otherwise
// all clients were one.
func TestGatewaysTrustTheLoadBalancer(t *testing.T) {
	c := readCompose(t)
	var env map[string]string
	gateway := c.Services[config.RoleGateway]
	require.NoError(t, gateway.Environment.Decode(&env))
	trusted, ok := strings.CutPrefix(env["WAGGLE_GATEWAY_TRUSTED_PROXIES"], "${WAGGLE_GATEWAY_TRUSTED_PROXIES:-")
	require.True(t, ok, "the setting of the gateway, which .env may replace")
	for network := range strings.SplitSeq(strings.TrimSuffix(trusted, "}"), ",") {
		p, err := netip.ParsePrefix(network)
		require.NoError(t, err)
		require.True(t, p.Addr().IsPrivate(), "%s: strangers may not name addresses", p)
	}
	require.Empty(t, gateway.Ports, "only the load balancer connects to gateways")
}

// Every role has a service that runs it alone and sees the folder of its own keys. Only the checking roles see the
// credentials of clients.
func TestEveryRoleHasAContainerWithItsOwnKey(t *testing.T) {
	c := readCompose(t)
	for _, role := range config.Roles {
		s, ok := c.Services[role]
		require.True(t, ok, "no service runs the role %s", role)
		require.Equal(t, []string{"serve", "--role", role}, s.Command)
		require.Contains(t, strings.Join(s.Volumes, " "), "./secrets/signing:/run/signing:ro", "%s cannot verify commands of people", role)
	}
	for name, s := range c.Services {
		for _, v := range s.Volumes {
			from, to, _ := strings.Cut(v, ":")
			folder, secret := strings.CutPrefix(from, "./secrets/")
			if !secret {
				continue
			}
			switch folder {
			case "clients":
				require.Contains(t, []string{config.RoleGateway, "operator"}, name)
				require.Equal(t, "/run/clients:ro", to)
			case "signing":
				require.Contains(t, config.Roles, name)
				require.Equal(t, "/run/signing:ro", to)
			case "routes":
				require.True(t, strings.HasPrefix(name, "nats-"), name)
			default:
				require.Equal(t, name, folder, "%s sees the keys of another role", name)
				require.Equal(t, "/run/secrets:ro", to, name)
			}
		}
	}
}

// A file that is mounted alone stays the old one when an editor, or an operator who withdraws a key, replaces it.
func TestContainersMountFolders(t *testing.T) {
	made := []string{"clients", "routes", "signing"} // by scripts/secrets.sh, besides one for each key
	for _, role := range keys.Roles() {
		made = append(made, string(role))
	}
	for name, s := range readCompose(t).Services {
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if folder, secret := strings.CutPrefix(from, "./secrets/"); secret {
				require.Contains(t, made, folder, name)
			} else if strings.HasPrefix(from, ".") {
				info, err := os.Stat(filepath.Join(top(t), from))
				require.NoError(t, err, name)
				require.True(t, info.IsDir(), "%s mounts the file %s", name, from)
			}
		}
	}
}
