package sandbox

import (
	"encoding/json"
	"os"

	"golang.org/x/sys/unix"
)

// A process under the shim's name never reaches main. Every binary that can start programs can thereby be their shim,
// tests included, and none can forget to.
func init() {
	if len(os.Args) != 2 || os.Args[0] != shimName {
		return
	}
	unix.CloseOnExec(statusFD)
	var o order
	if err := json.Unmarshal([]byte(os.Args[1]), &o); err != nil {
		die("read the order", err)
	}
	if o.Init {
		begin(&o)
	}
	confine(&o)
}
