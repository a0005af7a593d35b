package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValidateNamesTheOptionOfTheSwarm(t *testing.T) {
	for text, want := range map[string]string{
		"task: {queue_timeout: 0s}":                    "task.queue_timeout:",
		"task: {ask_timeout: -1s}":                     "task.ask_timeout:",
		"task: {lease: 0s}":                            "task.lease:",
		"task: {pause: 0s}":                            "task.pause:",
		"task: {keep: 0s}":                             "task.keep:",
		"task: {timeout: -1s}":                         "task.timeout:",
		"task: {tries: 0}":                             "task.tries:",
		"task: {tries: 11}":                            "task.tries:",
		"task: {max_depth: 65}":                        "task.max_depth:",
		"assistant: {name: ''}":                        "assistant.name:",
		"assistant: {concurrency: -1}":                 "assistant.concurrency:",
		"gateway: {peers: {grace: -1s}}":               "gateway.peers.grace:",
		"gateway: {legacy: {agent: nowhere}}":          "gateway.legacy.agent:",
		"gateway: {legacy: {service: '0.0.0.0:3002'}}": "gateway.legacy.service:",
		"gateway: {legacy: {client: '127.0.0.1:1', agent: '127.0.0.1:1'}}":  "gateway.legacy.agent:",
		"addr: 127.0.0.1:9000\ngateway: {legacy: {client: 127.0.0.1:9000}}": "gateway.legacy.client:",
	} {
		l, err := Load(Input{File: write(t, text)})
		require.NoError(t, err, text)
		require.ErrorContains(t, l.Validate(everything), want, text)
	}
	for _, text := range []string{
		"assistant: {enabled: false, name: ''}",
		"gateway: {legacy: {client: '127.0.0.1:0', agent: '127.0.0.1:0', service: 'localhost:3002'}}",
	} {
		l, err := Load(Input{File: write(t, text)})
		require.NoError(t, err, text)
		require.NoError(t, l.Validate(everything), text)
	}
}
