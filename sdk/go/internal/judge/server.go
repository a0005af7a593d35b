package judge

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Server is a real server with the demo model, for examples.
type Server struct{ process *process }

// Serve starts a server. It builds the program, unless the environment names one.
func Serve() (*Server, error) {
	if os.Getenv(Binary) == "" {
		if err := build(); err != nil {
			return nil, err
		}
	}
	p, err := startProcess()
	if err != nil {
		return nil, err
	}
	return &Server{p}, nil
}

// build builds the program in the temporary folder of the machine, below the module whose tests run.
func build() error {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("waggle-examples-%d", os.Getpid()))
	c := exec.Command("go", "build", "-o", path, "./waggle") //nolint:gosec,noctx // the path is made here, and a build ends
	c.Dir = filepath.Join("..", "..", "..", "cmd")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build the server: %w: %s", err, out)
	}
	return os.Setenv(Binary, path)
}

// URL returns the address of the server.
func (s *Server) URL() string { return s.process.url }

// Close ends the server and removes its data.
func (s *Server) Close() { s.process.end() }
