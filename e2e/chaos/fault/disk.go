package fault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/waggle-dev/waggle/cmd/waggle/keys"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

func disks() []Fault {
	return []Fault{{Name: "disk full under NATS server", Alone: true, Strike: fillDisk}}
}

// fillDisk fills the disk of a NATS server. One that has run out of space switches
// JetStream off until it is restarted: that is NATS' own rule, and the doctor says so.
func fillDisk(ctx context.Context, n *Injector) error {
	m := n.one(n.s.Servers)
	ballast := filepath.Join(m.Store, "ballast")
	if err := fill(ballast); err != nil {
		return err
	}
	for !strings.Contains(strings.ToLower(m.Output()), "no space left") {
		if err := process.Rest(ctx, process.Poll); err != nil {
			return fmt.Errorf("%s does not notice that its disk is full: %w", m.Name, err)
		}
	}
	n.note("%s reports a full disk", m.Name)
	said, err := n.doctor(ctx, "JetStream is switched off on [^:]*"+m.Name)
	if err != nil {
		return err
	}
	n.note("waggle doctor says: %s", said)
	if err := n.hold(ctx, away); err != nil {
		return err
	}
	if err := os.Remove(ballast); err != nil {
		return err
	}
	return n.killFor(ctx, 0, m)
}

// doctor asks the doctor until it says what is expected, and returns that.
func (n *Injector) doctor(ctx context.Context, expected string) (string, error) {
	like := regexp.MustCompile(expected)
	for {
		p := process.Start(n.s.T, process.Options{
			Name: "doctor", Dir: n.s.Dir, Env: n.s.As(string(permission.Operator), n.s.Urls()),
			Args: []string{"doctor", "--config", filepath.Join(n.s.Dir, "waggle.yaml"), "--system-nkey", keys.SeedFile(n.s.Keys, permission.System)},
		})
		_ = p.Wait() // it fails: something is wrong
		if said := like.FindString(p.Output()); said != "" {
			return said, nil
		}
		if err := n.hold(ctx, process.Poll); err != nil {
			return "", fmt.Errorf("the doctor does not say %q: %w: %s", expected, err, p.Output())
		}
	}
}

// fill writes a file until nothing more fits.
func fill(name string) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600) //nolint:gosec // on a disk of the test's
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	for err == nil {
		_, err = f.Write(block)
		if errors.Is(err, syscall.ENOSPC) && len(block) > 1 {
			block, err = block[:len(block)/2], nil
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}
