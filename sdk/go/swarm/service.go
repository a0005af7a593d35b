package swarm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/sdk/go/link"
)

// servicePath is where services connect.
const servicePath = "/ws/asp/service"

// Tool is a tool that a service offers.
type Tool struct {
	ID          string // by which it is called
	Name        string
	Description string
	// InputSchema and OutputSchema are JSON Schemas, as JSON or as anything that encodes
	// to one. The server holds calls and results to them. May be nil.
	InputSchema, OutputSchema any
	// Idempotent says that running it twice does no harm: the server may have a call run
	// again when this service is lost.
	Idempotent bool
	// Run runs the tool. Its result is encoded to JSON. ctx ends with the call's deadline, with the
	// service, and with the call's connection, because the server takes its loss for the end of the
	// service.
	Run func(ctx context.Context, c *ToolRun) (any, error)
}

// ServiceOptions say who a service is.
type ServiceOptions struct {
	Options
	ID           string // replicas of one id share its calls; made of the name by the server if empty
	Name         string // needed
	Capabilities []string
	Description  string
	Tools        []Tool
	Status       string // StatusActive if empty
	Concurrency  int    // calls at once, DefaultConcurrency if 0; more of them wait here
	// OnError is called with errors of the server that answer no call, one at a time. It must not
	// block. May be nil.
	OnError func(error)
}

// Service runs tools for agents. Its methods are safe for concurrent use, and wait for
// Run.
type Service struct {
	opt   ServiceOptions
	tools map[string]Tool
	link  *caller
	slots chan struct{}
	wg    sync.WaitGroup

	mu       sync.Mutex
	stopping bool
	id       string
	status   string
	calls    map[string]*ToolRun
}

var _ role = (*Service)(nil)

// NewService returns a service that offers its tools, once Run runs.
func NewService(opt ServiceOptions) (*Service, error) {
	base, err := opt.withDefaults(servicePath)
	switch {
	case err != nil:
		return nil, err
	case opt.Name == "":
		return nil, errors.New("swarm: a service needs a name")
	}
	if opt.Concurrency <= 0 {
		opt.Concurrency = DefaultConcurrency
	}
	if opt.Status == "" {
		opt.Status = StatusActive
	}
	if opt.OnError == nil {
		opt.OnError = func(error) {}
	}
	s := &Service{
		opt: opt, id: opt.ID, status: opt.Status, tools: map[string]Tool{}, slots: make(chan struct{}, opt.Concurrency), calls: map[string]*ToolRun{},
	}
	for _, t := range opt.Tools {
		if t.ID == "" || t.Run == nil || s.tools[t.ID].Run != nil {
			return nil, fmt.Errorf("swarm: tool %q needs a unique id and a Run", t.ID)
		}
		s.tools[t.ID] = t
	}
	base.OnDisconnect = s.lost(base.OnDisconnect)
	s.link = newCaller(context.Background(), base, s)
	return s, nil
}

// lost cancels the calls of a lost connection: the server no longer accepts their results.
func (s *Service) lost(then func(error)) func(error) {
	return func(err error) {
		s.cancelAll(ErrInterrupted)
		then(err)
	}
}

// ID returns the service's id: before the first registration the one of the options.
func (s *Service) ID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// Run connects and runs tools until ctx ends, which returns nil, or the server says that
// coming back is pointless. When ctx ends the calls' contexts do; Run waits for them and
// tells the server goodbye. Run is for one call.
func (s *Service) Run(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- s.link.run() }()
	var err error
	select {
	case <-ctx.Done():
		s.halt()
		goodbye(ctx, s.link, asp.ServiceUnregister, asp.ServiceUnregistered)
		if e := <-ended; !errors.Is(e, ErrClosed) {
			err = e
		}
	case err = <-ended:
		s.halt()
	}
	s.link.stop()
	return err
}

func (s *Service) halt() {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	s.cancelAll(ErrClosed)
	s.wg.Wait()
}

func (s *Service) cancelAll(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		c.cancel(cause)
	}
}

// Connected waits until the service is registered.
func (s *Service) Connected(ctx context.Context) error {
	_, err := s.link.up(ctx)
	return err
}

// query implements role.
func (s *Service) query() url.Values { return nil }

// greet implements role.
func (s *Service) greet(ctx context.Context, on *link.Conn) error {
	s.mu.Lock()
	id, status := s.id, s.status
	s.mu.Unlock()
	tools := make([]map[string]any, 0, len(s.opt.Tools))
	for _, t := range s.opt.Tools {
		d := map[string]any{"id": t.ID, "description": t.Description, "idempotent": t.Idempotent}
		for name, v := range map[string]any{"inputSchema": t.InputSchema, "outputSchema": t.OutputSchema} {
			if v != nil {
				d[name] = v
			}
		}
		if t.Name != "" {
			d["name"] = t.Name
		}
		tools = append(tools, d)
	}
	content := map[string]any{
		"name": s.opt.Name, "capabilities": append([]string{}, s.opt.Capabilities...), "tools": tools, "status": status, "description": s.opt.Description,
	}
	if id != "" {
		content["id"], content["serviceId"] = id, id
	}
	m, err := s.link.register(ctx, on, request{kind: asp.ServiceRegister, content: content, want: []string{asp.ServiceRegistered}})
	if err != nil {
		return err
	}
	d, err := as[asp.ServiceRegisteredContent](m)
	if err == nil && d.ID != "" {
		s.mu.Lock()
		s.id = d.ID
		s.mu.Unlock()
	}
	return err
}

// take implements role.
func (s *Service) take(m Message) {
	switch m.Type {
	case asp.ServiceExecute:
		if err := s.begin(m); err != nil {
			s.opt.OnError(err)
		}
	case asp.Error:
		s.opt.OnError(errorOf(m))
	}
}

// begin starts a call, unless it runs already.
func (s *Service) begin(m Message) error {
	d, err := as[asp.ServiceExecuteContent](m)
	if err != nil {
		return err
	}
	c := &ToolRun{service: s, ID: m.ID, Tool: d.ToolID, Params: d.Params, Metadata: d.Metadata}
	if c.Tool == "" {
		c.Tool = d.FunctionName
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case c.ID == "":
		return errors.New("swarm: the server made a call without an id")
	case s.stopping, s.calls[c.ID] != nil:
		return nil
	}
	ctx, cancel := limited(s.link.ctx, d.Metadata.Timestamp, d.Metadata.Deadline)
	c.cancel = cancel
	crowded := len(s.calls) >= maxHeld
	s.calls[c.ID] = c
	s.wg.Go(func() { s.do(ctx, c, crowded) })
	return nil
}

// do runs a call and tells its outcome.
func (s *Service) do(ctx context.Context, c *ToolRun, crowded bool) {
	defer func() {
		s.mu.Lock()
		delete(s.calls, c.ID)
		s.mu.Unlock()
		c.cancel(nil)
	}()
	if crowded {
		s.report(ctx, c, nil, fmt.Errorf("the service has %d calls, which is its limit", maxHeld))
		return
	}
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return // the server knows the deadline, and that the connection is lost
	}
	defer func() { <-s.slots }()
	result, err := s.guarded(ctx, c)
	if cause := context.Cause(ctx); errors.Is(cause, ErrInterrupted) || errors.Is(cause, ErrClosed) && err != nil {
		return // the server no longer accepts the result
	}
	s.report(context.WithoutCancel(ctx), c, result, err)
}

// guarded runs the tool. A panic fails the call and not the process.
func (s *Service) guarded(ctx context.Context, c *ToolRun) (result any, err error) {
	t, ok := s.tools[c.Tool]
	if !ok {
		return nil, &Error{Code: string(fault.ToolNotFound), Message: fmt.Sprintf("the service has no tool %q", c.Tool)}
	}
	defer func() {
		if r := recover(); r != nil {
			s.opt.OnError(fmt.Errorf("swarm: tool %s panicked: %v", c.Tool, r))
			err = errors.New("the tool failed")
		}
	}()
	return t.Run(ctx, c)
}

// report tells the outcome of a call on the connection of the moment. Another one would
// not do: the call is lost with the one on which it came.
func (s *Service) report(ctx context.Context, c *ToolRun, result any, err error) {
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	if _, cannot := json.Marshal(result); err == nil && cannot != nil {
		err = fmt.Errorf("the result cannot be encoded: %w", cannot)
	}
	kind, content := asp.ServiceTaskResult, map[string]any{"taskId": c.ID, "serviceId": s.ID(), "result": result}
	if err != nil {
		kind, content = asp.ServiceError, failureOf(c.ID, "", err)
		content["serviceId"] = s.ID()
		delete(content, "agentId")
	}
	if err := s.link.tell(ctx, kind, content); err != nil {
		s.opt.OnError(fmt.Errorf("swarm: the outcome of call %s: %w", c.ID, err))
	}
}

// SetStatus changes whether the service is given calls: only an active one is. The
// message may be empty. The status stays when the service has to connect again.
func (s *Service) SetStatus(ctx context.Context, status, message string) error {
	s.mu.Lock()
	s.status = status
	s.mu.Unlock()
	content := map[string]any{"status": status}
	if message != "" {
		content["message"] = message
	}
	_, err := s.link.call(ctx, request{kind: asp.ServiceStatus, content: content, want: []string{asp.ServiceStatusUpdated}})
	return err
}

// NotifyClient sends a client a notification outside of calls. The client gets it as an
// EventClientMessage.
func (s *Service) NotifyClient(ctx context.Context, client string, n Notification) error {
	_, err := s.link.call(ctx, request{
		kind: asp.ServiceNotified, want: []string{asp.NotificationReceived},
		content: map[string]any{"serviceId": s.ID(), "notification": n.wire(), "metadata": map[string]any{"clientId": client}},
	})
	return err
}

// ToolRun is one call of a tool. Its methods are for the tool's Run and the goroutines
// that it waits for.
type ToolRun struct {
	ID       string
	Tool     string
	Params   json.RawMessage
	Metadata CallMetadata

	service *Service
	cancel  context.CancelCauseFunc
}

// Decode reads the parameters of the call.
func (c *ToolRun) Decode(v any) error {
	if err := json.Unmarshal(c.Params, v); err != nil {
		return &Error{Code: string(fault.ToolBadInput), Message: "the parameters are not what the tool expects: " + err.Error()}
	}
	return nil
}

// Notify sends the progress of the call to the agent and to the client of its task, and returns
// when the server has accepted it.
func (c *ToolRun) Notify(ctx context.Context, n Notification) error {
	_, err := c.service.link.call(ctx, request{
		kind: asp.ServiceTaskNotification, want: []string{asp.NotificationReceived}, loss: once,
		content: map[string]any{"serviceId": c.service.ID(), "taskId": c.ID, "notification": n.wire()},
	})
	return err
}

// wire is the notification as services send it.
func (n Notification) wire() map[string]any {
	w := map[string]any{"type": orInfo(n.Type), "message": n.Message, "timestamp": asp.Stamp(time.Now())}
	if n.Data != nil {
		w["data"] = n.Data
	}
	return w
}
