package freeport_test

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/freeport"
)

func TestAPortIsReservedUntilItIsReleased(t *testing.T) {
	port, release, err := freeport.Reserve()
	require.NoError(t, err)
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	_, err = net.ListenPacket("udp4", at)
	require.Error(t, err, "another process could reserve it")
	for range 2 { // a server, and the server that follows it
		l, err := net.Listen("tcp", at)
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
	release()
	held, err := net.ListenPacket("udp4", at)
	require.NoError(t, err)
	require.NoError(t, held.Close())
}

func TestPortsDiffer(t *testing.T) {
	seen := map[int]bool{}
	for _, p := range freeport.Ports(t, 500) {
		require.False(t, seen[p])
		seen[p] = true
	}
}

// Outgoing connections never take a port of the package.
func TestTheSystemTakesOtherPorts(t *testing.T) {
	raw, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if os.IsNotExist(err) {
		t.Skip("needs Linux: the range of ports is in /proc")
	}
	require.NoError(t, err)
	from, err := strconv.Atoi(strings.Fields(string(raw))[0])
	require.NoError(t, err)
	for _, p := range freeport.Ports(t, 100) {
		require.Less(t, p, from)
	}
}
