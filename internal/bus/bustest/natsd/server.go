package main

import (
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	host = "127.0.0.1"
	// maxPayload is that of the embedded server.
	maxPayload = 1 << 20
	// startMaxWait bounds the start, on a machine that is busy with other things.
	startMaxWait = time.Minute
	// syncEvery is never, for a test: the page cache keeps the writes of a process that is killed.
	syncEvery = time.Hour
)

// options returns the options that all servers share.
func options(name string, port int, store string) *server.Options {
	return &server.Options{
		ServerName: name, Host: host, Port: port, JetStream: true, StoreDir: store, SyncInterval: syncEvery,
		NoSigs: true, NoLog: os.Getenv("WAGGLE_LOG_VERBOSE") == "", DisableJetStreamBanner: true, DisableShortFirstPing: true, MaxPayload: maxPayload,
	}
}

// start starts a server and returns when it accepts connections.
func start(o *server.Options) (*server.Server, error) {
	s, err := server.NewServer(o)
	if err != nil {
		return nil, err
	}
	if !o.NoLog {
		s.ConfigureLogger()
	}
	s.Start()
	if !s.ReadyForConnections(startMaxWait) {
		end(s)
		return nil, fmt.Errorf("the server on port %d with its files in %s is not ready after %v", o.Port, o.StoreDir, startMaxWait)
	}
	return s, nil
}

// announce tells the parent where the server listens.
func announce(s *server.Server) error {
	_, err := fmt.Fprintln(os.Stdout, "ready", s.ClientURL())
	return err
}

func end(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}
