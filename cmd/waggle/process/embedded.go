package process

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/waggle-dev/waggle/cmd/waggle/process/memory"
	"github.com/waggle-dev/waggle/cmd/waggle/process/own"
	"github.com/waggle-dev/waggle/internal/bus/embedded"
)

// syncIntervals are the durability profiles. The server opens and syncs a file of every stream at every interval, written or
// not: at 1 s this takes half of an idle installation's CPU, which is 0.45 % of a core with 10 s.
var syncIntervals = map[string]string{"standard": "10s", "strict": "always"}

// embed starts the NATS server of a process with its own bus.
func (p *process) embed() (*embedded.Server, error) {
	unlock, err := lock(p.Config.Data)
	if err != nil {
		return nil, err
	}
	p.closers = append(p.closers, unlock)
	host, port, err := free(p.Config.NATS.Addr)
	if err != nil {
		return nil, err
	}
	all, err := own.Users(p.Config)
	if err != nil {
		return nil, err
	}
	srv, err := embedded.Open(embedded.Config{
		Host: host, Port: port, StoreDir: filepath.Join(p.Config.Data, "nats"),
		Sync: syncIntervals[p.Config.Profile], Name: "waggle", Logger: p.Logger, Users: all,
	})
	if err != nil {
		return nil, fmt.Errorf("start the embedded NATS server: %w", err)
	}
	p.closers = append(p.closers, memory.Thrifty(os.Getenv), srv.Close)
	p.running.NATSURL = srv.ClientURL()
	forget, err := own.TellURL(p.Config, srv.ClientURL())
	p.closers = append(p.closers, forget)
	return srv, err
}

// free checks that no other process listens on the address, because the server itself only logs that. Port 0 becomes -1, the
// server's value for any port.
func free(addr string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, fmt.Errorf("nats.addr: %w", err)
	}
	if port, err = strconv.Atoi(text); err != nil {
		return "", 0, fmt.Errorf("nats.addr: %w", err)
	}
	if port == 0 {
		return host, -1, nil
	}
	l, err := net.Listen("tcp", addr) //nolint:noctx // binding does not wait
	if errors.Is(err, syscall.EADDRINUSE) {
		return "", 0, fmt.Errorf("nats.addr: %s is taken, perhaps by another NATS server or another \"waggle up\"; "+
			"choose another address with --nats-addr or WAGGLE_NATS_ADDR, or use that server with \"waggle serve\"", addr)
	}
	if err != nil {
		return "", 0, fmt.Errorf("nats.addr: %w", err)
	}
	return host, port, l.Close()
}

// lock creates the data folder and keeps a second process out of it: two servers on the same files would destroy them.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the operator's folder
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("data: %s is in use by another waggle process; stop it or choose another folder with --data", dir)
	}
	return func() { _ = f.Close() }, nil
}
