package main

import (
	"fmt"

	"github.com/waggle-dev/waggle/cmd/waggle/keys"
)

type keysCmd struct {
	Dir     string   `help:"Folder for the keys; made if it does not exist." default:"./secrets/nats" placeholder:"DIR"`
	Cluster []string `help:"Names of the NATS servers of a cluster: writes routes.conf for them too." placeholder:"HOST,..."`
}

// Run implements the command.
func (c *keysCmd) Run(std streams) error {
	made, err := keys.Ensure(c.Dir)
	if err != nil {
		return err
	}
	if len(c.Cluster) > 0 {
		if err := keys.EnsureRoutes(c.Dir, c.Cluster); err != nil {
			return err
		}
	}
	for _, role := range made {
		if _, err := fmt.Fprintln(std.out, "made a key for", role); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(std.out, "public keys for the NATS servers: %s\n", keys.PublicFile(c.Dir))
	return err
}
