package containers_test

import (
	"fmt"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"
)

// natsName returns the name of a server on the fleet's network.
func natsName(i int) string { return fmt.Sprintf("nats-%d", i+1) }

// pause freezes a server: its connections stay open and nothing answers.
func (f *fleet) pause(i int) {
	f.t.Helper()
	_, err := f.engine.ContainerPause(within(f.t), f.nats[i].GetContainerID(), client.ContainerPauseOptions{})
	require.NoError(f.t, err)
}

func (f *fleet) unpause(i int) {
	f.t.Helper()
	_, err := f.engine.ContainerUnpause(within(f.t), f.nats[i].GetContainerID(), client.ContainerUnpauseOptions{})
	require.NoError(f.t, err)
}

// disconnect takes the network from a server, which continues running.
func (f *fleet) disconnect(i int) {
	f.t.Helper()
	_, err := f.engine.NetworkDisconnect(within(f.t), f.network.ID, client.NetworkDisconnectOptions{Container: f.nats[i].GetContainerID()})
	require.NoError(f.t, err)
}

func (f *fleet) connect(i int) {
	f.t.Helper()
	_, err := f.engine.NetworkConnect(within(f.t), f.network.ID, client.NetworkConnectOptions{
		Container: f.nats[i].GetContainerID(), EndpointConfig: &network.EndpointSettings{Aliases: []string{natsName(i)}},
	})
	require.NoError(f.t, err)
}

// kill ends a server with SIGKILL.
func (f *fleet) kill(i int) {
	f.t.Helper()
	_, err := f.engine.ContainerKill(within(f.t), f.nats[i].GetContainerID(), client.ContainerKillOptions{Signal: "KILL"})
	require.NoError(f.t, err)
}

func (f *fleet) restart(i int) {
	f.t.Helper()
	_, err := f.engine.ContainerStart(within(f.t), f.nats[i].GetContainerID(), client.ContainerStartOptions{})
	require.NoError(f.t, err)
}
