package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Legacy addresses default to those of the originals, on the gateway's host, unless they are set, switched off, or the
// gateway's own.
func TestLegacyListensWhereTheOriginalsDo(t *testing.T) {
	for text, want := range map[string]Legacy{
		"legacy: false": {},
		"legacy: true": {
			Client: "127.0.0.1:3001", Agent: "127.0.0.1:3000", Service: "127.0.0.1:3002", MyAgent: "127.0.0.1:8080", Team: "127.0.0.1:8000",
		},
		"{legacy: true, addr: 'localhost:9100', gateway: {legacy: {client: '127.0.0.1:7', myagent: 'off', team: 'off', service: 'off'}}}": {
			Client: "127.0.0.1:7", Agent: "localhost:3000", ORBIT: "localhost:9000", MyAgent: LegacyOff, Team: LegacyOff, Service: LegacyOff,
		},
		"gateway: {legacy: {team: '127.0.0.1:8001', client: 'off'}}": {Team: "127.0.0.1:8001", Client: LegacyOff},
	} {
		l, err := Load(Input{File: write(t, text)})
		require.NoError(t, err, text)
		require.NoError(t, l.Validate(everything), text)
		require.NoError(t, l.Validate(everything), "as often as it is asked")
		require.Equal(t, want, l.Gateway.Legacy, text)
	}
	l, err := Load(Input{File: write(t, "{legacy: true, addr: '127.0.0.1:8080'}")})
	require.NoError(t, err)
	require.ErrorContains(t, l.Validate(everything), "gateway.legacy.myagent: 127.0.0.1:8080 is taken")
	l, err = Load(Input{Flags: map[string]string{"legacy": "true"}})
	require.NoError(t, err)
	require.True(t, l.Legacy)
}

func TestValidateNamesTheOptionOfTheSwarm(t *testing.T) {
	for text, want := range map[string]string{
		"task: {queue_timeout: 0s}":                                         "task.queue_timeout:",
		"task: {ask_timeout: -1s}":                                          "task.ask_timeout:",
		"task: {lease: 0s}":                                                 "task.lease:",
		"task: {pause: 0s}":                                                 "task.pause:",
		"task: {keep: 0s}":                                                  "task.keep:",
		"task: {timeout: -1s}":                                              "task.timeout:",
		"task: {tries: 0}":                                                  "task.tries:",
		"task: {tries: 11}":                                                 "task.tries:",
		"task: {max_depth: 65}":                                             "task.max_depth:",
		"assistant: {name: ''}":                                             "assistant.name:",
		"assistant: {concurrency: -1}":                                      "assistant.concurrency:",
		"gateway: {peers: {grace: -1s}}":                                    "gateway.peers.grace:",
		"gateway: {asp_messages: both}":                                     "gateway.asp_messages:",
		"gateway: {asp_statuses: both}":                                     "gateway.asp_statuses:",
		"gateway: {legacy: {team: '0.0.0.0:8000'}}":                         "gateway.legacy.team:",
		"gateway: {legacy: {agent: nowhere}}":                               "gateway.legacy.agent:",
		"gateway: {legacy: {service: '0.0.0.0:3002'}}":                      "gateway.legacy.service:",
		"gateway: {legacy: {client: '127.0.0.1:1', agent: '127.0.0.1:1'}}":  "gateway.legacy.agent:",
		"addr: 127.0.0.1:9000\ngateway: {legacy: {client: 127.0.0.1:9000}}": "gateway.legacy.client:",
	} {
		l, err := Load(Input{File: write(t, text)})
		require.NoError(t, err, text)
		require.ErrorContains(t, l.Validate(everything), want, text)
	}
	for _, text := range []string{
		"assistant: {enabled: false, name: ''}",
		"gateway: {asp_statuses: document, asp_messages: object}",
		"gateway: {legacy: {client: '127.0.0.1:0', agent: '127.0.0.1:0', service: 'localhost:3002'}}",
	} {
		l, err := Load(Input{File: write(t, text)})
		require.NoError(t, err, text)
		require.NoError(t, l.Validate(everything), text)
	}
}
