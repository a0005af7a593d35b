package plane

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	api "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// startTimeout is for a busy machine; on an idle one the API answers after 5 s.
	startTimeout = 3 * time.Minute
	// stopTimeout is how long a program may take to end before it is killed.
	stopTimeout = 10 * time.Second
	// requestTimeout ends a request that hangs on an overloaded machine, so that its caller
	// asks again.
	requestTimeout = 20 * time.Second
)

// Plane is a running control plane. Everything it writes is below its folder.
type Plane struct {
	dir    string
	url    string
	token  string
	config string
	etcd   string
	key    string // signs the tokens of service accounts
	bin    map[string]string
	procs  []*process
	failed chan error
}

type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
}

// Start starts the programs and returns once the API is ready. Stop has to be called,
// even after an error that comes with a Plane.
func Start(ctx context.Context, dir, modules string, bin map[string]string) (*Plane, error) {
	p := &Plane{dir: dir, bin: bin, failed: make(chan error, len(programs))}
	ports, err := freePorts(6)
	if err != nil {
		return nil, err
	}
	if err := p.secrets(); err != nil {
		return nil, err
	}
	p.etcd, p.url = "http://127.0.0.1:"+ports[0], "https://127.0.0.1:"+ports[2]
	if err := p.store(ports[1]); err != nil {
		return p, err
	}
	if err := p.server(ports[2]); err != nil {
		return p, err
	}
	if err := p.ready(ctx); err != nil {
		return p, err
	}
	if err := p.kubeconfig(); err != nil {
		return p, err
	}
	return p, p.controllers(ctx, modules, ports[3:])
}

// secrets makes the administrator's token and the key of service accounts.
func (p *Plane) secrets() error {
	raw := make([]byte, 24)
	_, _ = rand.Read(raw) // never fails
	p.token = hex.EncodeToString(raw)
	line := p.token + `,admin,admin,"system:masters"` + "\n"
	if err := os.WriteFile(filepath.Join(p.dir, "tokens.csv"), []byte(line), 0o600); err != nil {
		return err
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	p.key = filepath.Join(p.dir, "service-accounts.key")
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return os.WriteFile(p.key, pem.EncodeToMemory(block), 0o600)
}

func (p *Plane) store(peerPort string) error {
	peer := "http://127.0.0.1:" + peerPort
	return p.run("etcd", "--data-dir="+filepath.Join(p.dir, "etcd"), "--unsafe-no-fsync=true",
		"--listen-client-urls="+p.etcd, "--advertise-client-urls="+p.etcd,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer)
}

func (p *Plane) server(port string) error {
	return p.run("kube-apiserver", "--etcd-servers="+p.etcd,
		"--bind-address=127.0.0.1", "--secure-port="+port, "--cert-dir="+filepath.Join(p.dir, "certs"),
		// An address of this machine cannot be an endpoint of a Service, and nothing needs one.
		"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+p.key, "--service-account-signing-key-file="+p.key,
		"--token-auth-file="+filepath.Join(p.dir, "tokens.csv"), "--authorization-mode=RBAC")
}

func (p *Plane) controllers(ctx context.Context, modules string, ports []string) error {
	common := []string{"--kubeconfig=" + p.config, "--leader-elect=false", "--bind-address=127.0.0.1"}
	manager := append([]string{
		"--secure-port=" + ports[0], "--cert-dir=" + filepath.Join(p.dir, "manager"), "--use-service-account-credentials=true",
		"--service-account-private-key-file=" + p.key, "--root-ca-file=" + p.ca(),
		"--horizontal-pod-autoscaler-sync-period=5s", // 15 s would slow the tests down
		// A machine that is so busy that the nodes' signs of life are late has no dead nodes.
		"--node-monitor-grace-period=1h",
	}, common...)
	scheduler := append([]string{"--secure-port=" + ports[1], "--cert-dir=" + filepath.Join(p.dir, "scheduler")}, common...)
	files, err := stages(ctx, modules)
	if err != nil {
		return err
	}
	nodes := []string{"--kubeconfig=" + p.config, "--manage-all-nodes=true", "--server-address=127.0.0.1:" + ports[2]}
	for _, f := range files {
		nodes = append(nodes, "--config="+f)
	}
	return errors.Join(p.run("kube-controller-manager", manager...), p.run("kube-scheduler", scheduler...), p.run("kwok", nodes...))
}

// run starts one program. Its output goes to a file of its name.
func (p *Plane) run(name string, args ...string) error {
	log, err := os.Create(filepath.Clean(filepath.Join(p.dir, name+".log")))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()        // the program has its own descriptor
	cmd := exec.Command(p.bin[name], args...) //nolint:gosec,noctx // built by this package; ended by Stop
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	proc := &process{name: name, cmd: cmd, done: make(chan struct{})}
	p.procs = append(p.procs, proc)
	go func() {
		defer close(proc.done)
		if err := cmd.Wait(); err != nil {
			p.failed <- fmt.Errorf("%s ended: %w", name, err)
		}
	}()
	return nil
}

// ca is the certificate that the server made for itself.
func (p *Plane) ca() string { return filepath.Join(p.dir, "certs", "apiserver.crt") }

// Client returns how an administrator reaches the API.
func (p *Plane) Client() *rest.Config {
	return &rest.Config{
		Host: p.url, BearerToken: p.token, TLSClientConfig: rest.TLSClientConfig{CAFile: p.ca()},
		Timeout: requestTimeout,
		QPS:     200, Burst: 400, // the test's own pace, not that of a shared cluster
	}
}

func (p *Plane) ready(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case err := <-p.failed:
			return false, err
		default:
		}
		if _, err := os.Stat(p.ca()); err != nil {
			return false, nil //nolint:nilerr // not yet made
		}
		client, err := discovery.NewDiscoveryClientForConfig(p.Client())
		if err != nil {
			return false, nil //nolint:nilerr // half a certificate: it is being written
		}
		return client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	})
	if err != nil {
		return fmt.Errorf("the API does not get ready (logs in %s): %w", p.dir, err)
	}
	return nil
}

// Kubeconfig returns the file that tells programs how an administrator reaches the API.
func (p *Plane) Kubeconfig() string { return p.config }

func (p *Plane) kubeconfig() error {
	p.config = filepath.Join(p.dir, "kubeconfig")
	c := api.NewConfig()
	c.Clusters["plane"] = &api.Cluster{Server: p.url, CertificateAuthority: p.ca()}
	c.AuthInfos["admin"] = &api.AuthInfo{Token: p.token}
	c.Contexts["plane"] = &api.Context{Cluster: "plane", AuthInfo: "admin"}
	c.CurrentContext = "plane"
	return clientcmd.WriteToFile(*c, p.config)
}

// Stop ends all programs, the last one that was started first, and waits for them.
func (p *Plane) Stop() {
	for i := len(p.procs) - 1; i >= 0; i-- {
		proc := p.procs[i]
		_ = proc.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-proc.done:
		case <-time.After(stopTimeout):
			_ = proc.cmd.Process.Kill()
			<-proc.done
		}
	}
}

// freePorts returns ports that are free at the moment.
func freePorts(n int) ([]string, error) {
	var out []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // at once
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }() // all at the end, so that no port comes twice
		a, ok := l.Addr().(*net.TCPAddr)
		if !ok {
			return nil, errors.New("not a TCP address")
		}
		out = append(out, strconv.Itoa(a.Port))
	}
	return out, nil
}
