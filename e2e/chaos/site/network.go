package site

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/freeport"
)

const (
	// insideVar tells the test binary that it runs in namespaces of its own; its value
	// is why it does not, if it could not.
	insideVar = "WAGGLE_CHAOS_NETWORK"
	isolated  = "isolated"
	// hubIP is where the test itself is, with the model, the tools and the clients.
	hubIP = "10.77.0.1"
	// commandTimeout bounds the calls of ip and nft, which take milliseconds.
	commandTimeout = 20 * time.Second
)

// Isolate runs the test binary again in separate network and mount namespaces, where
// partitions and full disks harm no other process and end with it. It returns the exit code
// of that run, or false if this is that run, or if the machine does not allow it: then
// Network says why, and faults that need it are reported as not possible.
func Isolate() (code int, done bool) {
	if os.Getenv(insideVar) != "" {
		return 0, false
	}
	if why := obstacle(); why != "" {
		if err := os.Setenv(insideVar, why); err != nil {
			panic(err) // the name is a constant
		}
		return 0, false
	}
	cmd := exec.CommandContext(context.Background(), "/proc/self/exe", os.Args[1:]...) //nolint:gosec // this very program
	cmd.Env = append(os.Environ(), insideVar+"="+isolated)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
	}
	return cmd.ProcessState.ExitCode(), true
}

// obstacle says what keeps the tests from namespaces, "" if nothing does.
func obstacle() string {
	if os.Getuid() != 0 {
		return "namespaces need root"
	}
	for _, tool := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(tool); err != nil {
			return tool + " is not installed (apt-get install iproute2 nftables)"
		}
	}
	return ""
}

// Network places processes: each in a namespace behind a bridge, or all on the loopback
// address where that is not possible.
type Network struct {
	t    testing.TB
	why  string // not isolated because
	last int    // host part of the newest address
}

// NewNetwork prepares the bridge.
func NewNetwork(t testing.TB) *Network {
	t.Helper()
	n := &Network{t: t, last: 9}
	if v := os.Getenv(insideVar); v != isolated {
		n.why = v
		if v == "" {
			n.why = "the test binary was not started by its TestMain"
		}
		return n
	}
	require.NoError(t, os.MkdirAll("/run/netns", 0o755)) //nolint:gosec // as ip makes it
	require.NoError(t, syscall.Mount("netns", "/run/netns", "tmpfs", 0, "size=1m"))
	n.run("ip", "link", "set", "lo", "up")
	n.run("ip", "link", "add", "hub", "type", "bridge")
	n.run("ip", "addr", "add", hubIP+"/24", "dev", "hub")
	n.run("ip", "link", "set", "hub", "up")
	t.Cleanup(func() {
		n.run("ip", "link", "del", "hub")
		require.NoError(t, syscall.Unmount("/run/netns", syscall.MNT_DETACH))
	})
	return n
}

// Isolated reports whether processes have networks of their own, and if not why.
func (n *Network) Isolated() (bool, string) { return n.why == "", n.why }

// Hub is the address of the test.
func (n *Network) Hub() string {
	if n.why == "" {
		return hubIP
	}
	return "127.0.0.1"
}

// run runs a command that has to work.
func (n *Network) run(args ...string) {
	n.t.Helper()
	_, err := command("", args...)
	require.NoError(n.t, err)
}

func command(stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // the arguments are ours
	cmd.Stdin = strings.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out.String())
	}
	return out.String(), nil
}

// Place is where one process runs.
type Place struct {
	n    *Network
	Name string
	IP   string
	port int
}

// Place makes a place for a process.
func (n *Network) Place(name string) *Place {
	n.t.Helper()
	p := &Place{n: n, Name: name, IP: n.Hub(), port: 4222}
	if n.why != "" {
		return p
	}
	n.last++
	p.IP = "10.77.0." + strconv.Itoa(n.last)
	link := "veth" + strconv.Itoa(n.last)
	n.run("ip", "netns", "add", name)
	n.run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
	n.run("ip", "link", "set", link, "master", "hub", "up")
	n.run("ip", "-n", name, "addr", "add", p.IP+"/24", "dev", "eth0")
	n.run("ip", "-n", name, "link", "set", "eth0", "up")
	n.run("ip", "-n", name, "link", "set", "lo", "up")
	n.t.Cleanup(func() { // the kernel takes its time to remove a namespace, and its links with it
		n.run("ip", "link", "del", link)
		n.run("ip", "netns", "del", name)
	})
	return p
}

// Wrap is what a command has to begin with to run in the place.
func (p *Place) Wrap() []string {
	if p.n.why != "" {
		return nil
	}
	return []string{"ip", "netns", "exec", p.Name}
}

// Addr returns an address of the place without a listener.
func (p *Place) Addr() string {
	if p.n.why != "" {
		return freeport.Addr(p.n.t)
	}
	p.port++
	return p.IP + ":" + strconv.Itoa(p.port)
}

// The ways in which a Cut breaks a network.
const (
	BothWays = "both ways" // nothing goes through
	Inbound  = "inbound"
	Loss     = "5 % loss"
)

// Cut drops packets between the place and other addresses, until Heal.
func (p *Place) Cut(way string, from ...string) error {
	set := "{ " + strings.Join(from, ", ") + " }"
	rule := "counter drop"
	if way == Loss {
		rule = "numgen random mod 100 < 5 counter drop"
	}
	text := fmt.Sprintf("table inet chaos {\n chain in { type filter hook input priority 0; ip saddr %s %s; }\n", set, rule)
	if way != Inbound {
		text += fmt.Sprintf(" chain out { type filter hook output priority 0; ip daddr %s %s; }\n", set, rule)
	}
	_, err := command(text+"}\n", append(p.Wrap(), "nft", "-f", "-")...)
	return err
}

var dropped = regexp.MustCompile(`counter packets (\d+)`)

// Heal ends a Cut and returns how many packets it has dropped.
func (p *Place) Heal() (packets int, err error) {
	out, err := command("", append(p.Wrap(), "nft", "list", "table", "inet", "chaos")...)
	if err != nil {
		return 0, err
	}
	for _, m := range dropped.FindAllStringSubmatch(out, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return 0, fmt.Errorf("nft's counter: %w", err)
		}
		packets += n
	}
	_, err = command("", append(p.Wrap(), "nft", "delete", "table", "inet", "chaos")...)
	return packets, err
}

// Reached reports whether packets from the test reach the place and come back: its
// kernel refuses connections to port 9.
func (p *Place) Reached(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(p.IP, "9"))
	if err == nil {
		_ = conn.Close()
	}
	return err == nil || errors.Is(err, syscall.ECONNREFUSED)
}
