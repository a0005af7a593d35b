// Package judge plays the server of the cases in package sdk, and compares what a program saw with what it must see. A runner in each
// language makes the client, does the steps of the program and hands in what each of them showed:
//
//	POST /cases/NAME        begins the case: {"urls": the gateways}
//	POST /cases/NAME/tell   a step tell, which is done when the response comes
//	POST /cases/NAME/end    ends it: {"seen": one sight of each step, "pauses": whole seconds}; the answer lists what is wrong
//
// The words of tell: go WORD releases what is held; kill and start end and start the real server.
package judge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/sdk"
)

// Judge serves the cases. One of each name is under way at a time.
type Judge struct {
	cases  map[string]sdk.Case
	listen net.Listener
	server *http.Server

	mu     sync.Mutex
	plays  map[string]*play
	shared *process
}

// Start begins to serve on a port of this machine.
func Start() (*Judge, error) {
	groups, err := sdk.Load()
	if err != nil {
		return nil, err
	}
	j := &Judge{cases: map[string]sdk.Case{}, plays: map[string]*play{}}
	for _, g := range groups {
		for _, c := range g.Cases {
			j.cases[c.Name] = c
		}
	}
	if j.listen, err = local(); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /cases/{name}", j.handle(j.begin))
	mux.HandleFunc("POST /cases/{name}/tell", j.handle(j.tell))
	mux.HandleFunc("POST /cases/{name}/end", j.handle(j.end))
	j.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = j.server.Serve(j.listen) }()
	return j, nil
}

func local() (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
}

// URL is the address of the judge.
func (j *Judge) URL() string { return "http://" + j.listen.Addr().String() }

// Close ends what is under way, and the real server.
func (j *Judge) Close() {
	_ = j.server.Close()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range j.plays {
		p.close()
	}
	if j.shared != nil {
		j.shared.end()
	}
}

// handle answers with the JSON of what f returns, or with its error.
func (j *Judge) handle(f func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer, err := f(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}
}

func (j *Judge) begin(r *http.Request) (any, error) {
	c, ok := j.cases[r.PathValue("name")]
	if !ok {
		return nil, errors.New("no such case")
	}
	p, err := j.newPlay(c)
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	old := j.plays[c.Name]
	j.plays[c.Name] = p
	j.mu.Unlock()
	if old != nil {
		old.close()
	}
	return map[string]any{"urls": p.urls}, nil
}

func (j *Judge) newPlay(c sdk.Case) (*play, error) {
	switch c.Real {
	case "":
		return newPlay(c)
	case sdk.RealOwn:
		own, err := startProcess()
		if err != nil {
			return nil, err
		}
		return &play{of: c, urls: []string{own.url}, real: own}, nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.shared == nil {
		var err error
		if j.shared, err = startProcess(); err != nil {
			return nil, err
		}
	}
	return &play{of: c, urls: []string{j.shared.url}}, nil
}

func (j *Judge) play(r *http.Request) (*play, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	p, ok := j.plays[r.PathValue("name")]
	if !ok {
		return nil, errors.New("the case has not begun")
	}
	return p, nil
}

func (j *Judge) tell(r *http.Request) (any, error) {
	p, err := j.play(r)
	if err != nil {
		return nil, err
	}
	var s sdk.Step
	if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
		return nil, fmt.Errorf("read the step: %w", err)
	}
	return map[string]any{}, p.told(s)
}

// Seen is what a program saw.
type Seen struct {
	Seen   []sdk.Sight `json:"seen"`
	Pauses []int       `json:"pauses"`
}

func (j *Judge) end(r *http.Request) (any, error) {
	p, err := j.play(r)
	if err != nil {
		return nil, err
	}
	var s Seen
	if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
		return nil, fmt.Errorf("read what was seen: %w", err)
	}
	j.mu.Lock()
	delete(j.plays, p.of.Name)
	j.mu.Unlock()
	p.close()
	wrong := append(p.left(), compare(p.of, s)...)
	if wrong == nil {
		wrong = []string{}
	}
	return map[string]any{"wrong": wrong}, nil
}
