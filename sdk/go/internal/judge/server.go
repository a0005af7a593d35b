package judge

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Server is a real server with the demo model, for examples.
type Server struct {
	process *process
	built   string // the program, if it was built for this server
}

// Serve starts a server. It builds the program, unless the environment names one.
func Serve() (*Server, error) {
	s := &Server{}
	var err error
	if os.Getenv(Binary) == "" {
		if s.built, err = build(); err != nil {
			return nil, err
		}
	}
	if s.process, err = startProcess(); err != nil {
		return nil, err
	}
	return s, nil
}

// build builds the program of the repository in a temporary folder and returns its path.
func build() (string, error) {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("waggle-examples-%d", os.Getpid()))
	c := exec.Command("go", "build", "-o", path, "./waggle") //nolint:gosec,noctx // the path is made here, and a build ends
	c.Dir = filepath.Join("..", "..", "..", "cmd")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the server: %w: %s", err, out)
	}
	return path, os.Setenv(Binary, path)
}

// URL returns the address of the server.
func (s *Server) URL() string { return s.process.url }

// Close ends the server and removes its data, and the program that was built for it.
func (s *Server) Close() {
	s.process.end()
	if s.built != "" {
		_ = os.Remove(s.built)
	}
}
