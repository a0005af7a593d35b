package judge

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Binary names the environment variable with the path of the program that real cases start.
const Binary = "WAGGLE_E2E_BINARY"

// settings are those of a real server.
const settings = `pipeline: {retry_backoff: 20ms}
worker: {model_tries: 1}
gateway: {message_rate: 1000, message_burst: 1000}
`

// process is a real server with everything in one process, and the demo model.
type process struct {
	url, folder string
	args        []string
	running     *exec.Cmd
}

func startProcess() (*process, error) {
	if os.Getenv(Binary) == "" {
		return nil, fmt.Errorf("a case needs a real server: set %s to the path of bin/waggle", Binary)
	}
	folder, err := os.MkdirTemp("", "waggle-case-")
	if err != nil {
		return nil, err
	}
	p := &process{folder: folder}
	if err := p.prepare(); err != nil {
		p.end()
		return nil, err
	}
	if err := p.start(); err != nil {
		p.end()
		return nil, err
	}
	return p, nil
}

// prepare writes the settings and the workspace, and chooses the ports.
func (p *process) prepare() error {
	workspace := filepath.Join(p.folder, "workspace")
	if err := os.Mkdir(workspace, 0o700); err != nil {
		return err
	}
	var long strings.Builder
	for n := range 20_000 {
		fmt.Fprintf(&long, "line %d\n", n)
	}
	for path, text := range map[string]string{
		filepath.Join(p.folder, "waggle.yaml"): settings, filepath.Join(workspace, "notes.md"): "buy milk\n", filepath.Join(workspace, "long.txt"): long.String(),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	ports := make([]string, 3)
	for i := range ports {
		l, err := local()
		if err != nil {
			return err
		}
		defer func() { _ = l.Close() }() // together, so that no two are the same
		ports[i] = l.Addr().String()
		if _, _, err := net.SplitHostPort(ports[i]); err != nil {
			return err
		}
	}
	p.url = "http://" + ports[0]
	p.args = []string{
		"up", "--config", filepath.Join(p.folder, "waggle.yaml"), "--addr", ports[0], "--nats-addr", ports[1], "--telemetry-addr", ports[2],
		"--data", filepath.Join(p.folder, "data"), "--workspace", workspace,
	}
	return nil
}

// start starts it, and returns once it serves.
func (p *process) start() error {
	c := exec.Command(os.Getenv(Binary), p.args...) //nolint:gosec,noctx // the program under test, which end kills
	c.Dir = p.folder
	c.Env = append(c.Env, "HOME="+p.folder, "PATH="+os.Getenv("PATH"))
	var log strings.Builder
	c.Stderr = &log
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	p.running = c
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "Open in a browser") {
			return nil
		}
	}
	_ = p.kill()
	return errors.New("the server did not start: " + log.String())
}

// kill ends it as kill -9 does.
func (p *process) kill() error {
	if p.running == nil {
		return nil
	}
	err := p.running.Process.Kill()
	_ = p.running.Wait() // it was killed
	p.running = nil
	return err
}

func (p *process) end() {
	_ = p.kill()
	_ = os.RemoveAll(p.folder)
}
