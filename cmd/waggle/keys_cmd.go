package main

import (
	"fmt"
	"strconv"

	"github.com/waggle-dev/waggle/cmd/waggle/keys"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

type keysCmd struct {
	Dir        string   `help:"Folder for the keys; created if missing." default:"./secrets/nats" placeholder:"DIR"`
	Cluster    []string `help:"Names of the NATS servers of a cluster; also writes routes.conf." placeholder:"HOST,..."`
	Partitions string   `help:"Number of partitions of the installation (nats.partitions): writes accounts.conf for its NATS servers, in place of deploy/nats/accounts.conf, which is for 16." enum:",16,64,256" default:"" placeholder:"N"`
	Signing    string   `help:"Step of a signing key rotation: add, switch or drop." enum:",add,switch,drop" default:"" placeholder:"STEP"`
}

// Run implements the command.
func (c *keysCmd) Run(std streams) error {
	signs, err := keys.EnsureSigning(c.Dir)
	if err == nil && c.Signing != "" {
		err = keys.RotateSigning(c.Dir, c.Signing)
	}
	if err != nil {
		return err
	}
	made, err := keys.Ensure(c.Dir)
	if err != nil {
		return err
	}
	if len(c.Cluster) > 0 {
		if err := keys.EnsureRoutes(c.Dir, c.Cluster); err != nil {
			return err
		}
	}
	for _, n := range subject.PartitionChoices() {
		if c.Partitions != strconv.Itoa(int(n)) {
			continue
		}
		if err := keys.WriteAccounts(c.Dir, n); err != nil {
			return err
		}
	}
	if signs {
		if _, err := fmt.Fprintln(std.out, "made a key for signing commands"); err != nil {
			return err
		}
	}
	for _, role := range made {
		if _, err := fmt.Fprintln(std.out, "made a key for", role); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(std.out, "public keys for the NATS servers: %s\npublic keys of gateways, for every role: %s\n",
		keys.PublicFile(c.Dir), keys.SigningPublicFile(c.Dir))
	return err
}
