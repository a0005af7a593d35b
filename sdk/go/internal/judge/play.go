package judge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/sdk"
)

// play is a case that is under way.
type play struct {
	of   sdk.Case
	urls []string
	real *process // own

	over   chan struct{} // is closed at the end of the case
	server *http.Server
	dead   []net.Listener

	mu    sync.Mutex
	wrong []string
	done  map[string]int // exchanges, by operation
	ids   map[string]any // of the last body, by operation
	words map[string]chan struct{}
}

func newPlay(c sdk.Case) (*play, error) {
	p := &play{of: c, over: make(chan struct{}), done: map[string]int{}, ids: map[string]any{}, words: map[string]chan struct{}{}}
	for range c.Client.Away {
		l, err := local()
		if err != nil {
			return nil, err
		}
		p.dead = append(p.dead, l)
		p.urls = append(p.urls, "http://"+l.Addr().String())
		go hangUp(l)
	}
	l, err := local()
	if err != nil {
		return nil, err
	}
	p.urls = append(p.urls, "http://"+l.Addr().String())
	mux := http.NewServeMux()
	for operation, pattern := range sdk.Routes {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { p.serve(operation, w, r) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		p.complain("a request of no operation: %s %s", r.Method, r.URL)
		http.NotFound(w, r)
	})
	p.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = p.server.Serve(l) }()
	return p, nil
}

// hangUp ends each connection.
func hangUp(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_ = conn.Close()
	}
}

func (p *play) close() {
	if p.real != nil {
		p.real.end()
	}
	if p.server == nil {
		return
	}
	close(p.over)
	_ = p.server.Close()
	for _, l := range p.dead {
		_ = l.Close()
	}
}

func (p *play) complain(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrong = append(p.wrong, fmt.Sprintf(format, args...))
}

// left returns what was wrong with the requests, and which did not come.
func (p *play) left() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	wrong := p.wrong
	all := map[string]int{}
	for _, x := range p.of.Server {
		if !x.May {
			all[x.On]++
		}
	}
	for operation, n := range all {
		if p.done[operation] < n {
			wrong = append(wrong, fmt.Sprintf("%d requests %s came, and not %d", p.done[operation], operation, n))
		}
	}
	return wrong
}

// told does a step tell.
func (p *play) told(s sdk.Step) error {
	switch word, rest, _ := strings.Cut(s.Word, " "); word {
	case "go":
		close(p.word(rest))
		return nil
	case "kill":
		return p.real.kill()
	case "start":
		return p.real.start()
	}
	return fmt.Errorf("no word %q", s.Word)
}

// word returns the channel that the word closes.
func (p *play) word(name string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.words[name] == nil {
		p.words[name] = make(chan struct{})
	}
	return p.words[name]
}

// hold waits for a word.
func (p *play) hold(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	select {
	case <-p.word(name):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.over:
		return net.ErrClosed
	}
}

// next takes the next exchange of an operation.
func (p *play) next(operation string) (sdk.Exchange, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.done[operation]
	p.done[operation]++
	for _, x := range p.of.Server {
		if x.On != operation {
			continue
		}
		if n == 0 {
			return x, true
		}
		n--
	}
	return sdk.Exchange{}, false
}

// serve answers a request as the case says.
func (p *play) serve(operation string, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the program has left
	}
	x, ok := p.next(operation)
	if !ok {
		p.complain("one more request %s: %s %s", operation, r.Method, r.URL)
		http.Error(w, `{"title":"NOT_FOUND","status":404,"detail":"The case has no answer to this request."}`, http.StatusNotFound)
		return
	}
	if text := p.unwanted(operation, x.Want, r, body); text != "" {
		p.complain("request %d of %s: %s", p.count(operation), operation, text)
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		p.complain("take the connection: %v", err)
		return
	}
	defer func() { _ = conn.Close() }()
	ctx, leave := context.WithCancel(r.Context())
	defer leave()
	go func() {
		_, _ = io.Copy(io.Discard, conn) // until the program leaves
		leave()
	}()
	if p.hold(ctx, x.Hold) != nil || x.Lost {
		return
	}
	a := answer{play: p, of: x, conn: conn, log: logOf(operation, r)}
	if err := a.write(ctx); err != nil && !errors.Is(err, net.ErrClosed) && ctx.Err() == nil {
		p.complain("answer %s: %v", operation, err)
	}
}

func (p *play) count(operation string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done[operation]
}

// unwanted returns what is wrong with a request.
func (p *play) unwanted(operation string, want *sdk.Want, r *http.Request, raw []byte) string {
	var body map[string]any
	_ = json.Unmarshal(raw, &body) // most requests have none
	p.mu.Lock()
	before := p.ids[operation]
	p.ids[operation] = idOf(body)
	p.mu.Unlock()
	if want == nil {
		return ""
	}
	if want.Token != nil {
		has, expected := r.Header.Get("Authorization"), ""
		if *want.Token != "" {
			expected = "Bearer " + *want.Token
		}
		if has != expected {
			return fmt.Sprintf("its credentials are %q", has)
		}
	}
	if want.After != nil {
		if has := after(r); has != *want.After {
			return fmt.Sprintf("it begins after %d, and not after %d", has, *want.After)
		}
	}
	if want.SameID && (before == nil || before != idOf(body)) {
		return fmt.Sprintf("its id is %v, and that of the one before %v", idOf(body), before)
	}
	return unlike(want, r, body)
}

// unlike returns how the query and the body of a request differ from those that are wanted.
func unlike(want *sdk.Want, r *http.Request, body map[string]any) string {
	query := map[string]any{}
	for name := range r.URL.Query() {
		query[name] = r.URL.Query().Get(name)
	}
	if want.Query != nil {
		if text := differs(plain(want.Query), plain(query), "the query"); text != "" {
			return text
		}
	}
	if want.Body == nil {
		return ""
	}
	return differs(plain(want.Body), plain(body), "the body")
}

// idOf returns the id of what a body asks for: AG-UI calls that of a message runId.
func idOf(body map[string]any) any {
	if v, ok := body["runId"]; ok {
		return v
	}
	return body["id"]
}

// after returns the position of a stream.
func after(r *http.Request) uint64 {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.URL.Query().Get("after")
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// logOf returns the log that a stream shows.
func logOf(operation string, r *http.Request) string {
	kind := map[string]string{"streamTask": "task", "streamTeam": "team"}[operation]
	if kind == "" {
		kind = "session"
	}
	name := r.PathValue("id")
	if name == "" {
		name = "s1"
	}
	return kind + "." + name
}

// document returns a problem document.
func document(code string, status int, field string) []byte {
	doc := map[string]any{"title": code, "status": status, "detail": "The case says so."}
	if field != "" {
		doc["field"] = field
	}
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(doc); err != nil {
		return nil // unreachable: texts always have a JSON form
	}
	return b.Bytes()
}
