package top

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/google/uuid"

	"github.com/waggle-dev/waggle/cmd/waggle/socket"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

const (
	// every is the time between two looks at the gateway.
	every = time.Second
	// frame is the number of rows that are neither list nor details: title, rooms, head of the list, rule, note and keys.
	frame = 6
)

// Gateway is the part of a client that the view uses.
type Gateway interface {
	Call(ctx context.Context, method string, body []byte, parts ...string) (json.RawMessage, error)
	Get(ctx context.Context, query url.Values, parts ...string) (json.RawMessage, error)
}

// Options configure the view. Gateway is required.
type Options struct {
	Gateway Gateway
	URL     string // of the gateway, without credentials
	In      io.Reader
	Out     io.Writer
	Environ []string
	Color   bool
}

// Messages of the program to its model.
type (
	tick   struct{}
	loaded struct {
		room  int
		state string // of the filter
		rows  []row
		err   error
		at    time.Time
	}
	answered struct {
		text string
		err  error
	}
)

// list is what the model knows of a room.
type list struct {
	rows []row
	at   time.Time // of rows; zero: none were read yet
	err  error     // of the last look
	pick string    // id of the selected row
}

// model is the state of the view. Only the program's one goroutine calls its methods.
type model struct {
	ctx   context.Context //nolint:containedctx // the program's, for its commands
	gate  Gateway
	url   string
	now   func() time.Time
	color bool

	rooms []room
	lists []list
	at    int
	state string       // which sessions show; empty: all
	busy  map[int]bool // rooms that are being read

	note    string // about the last answer
	writing *textinput.Model
	verdict string // decision of the text that is being written

	width, height int
}

func newModel(ctx context.Context, opt Options) *model {
	all := rooms()
	return &model{
		ctx: ctx, gate: opt.Gateway, url: opt.URL, now: time.Now, color: opt.Color,
		rooms: all, lists: make([]list, len(all)), busy: map[int]bool{}, width: 80, height: 24,
	}
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return tea.Batch(m.look(), m.wait()) }

func (m *model) wait() tea.Cmd { return tea.Tick(every, func(time.Time) tea.Msg { return tick{} }) }

// look reads the room that shows, and the inbox, whose number always shows. A slow gateway is asked once at a time.
func (m *model) look() tea.Cmd {
	var all []tea.Cmd
	for _, n := range slices.Compact([]int{min(m.at, questions), max(m.at, questions)}) {
		if !m.busy[n] {
			m.busy[n] = true
			all = append(all, m.read(n))
		}
	}
	return tea.Batch(all...)
}

func (m *model) read(n int) tea.Cmd {
	r, query, state := m.rooms[n], url.Values{}, ""
	if n == sessions && m.state != "" {
		state = m.state
		query.Set("state", state)
	}
	return func() tea.Msg {
		raw, err := m.gate.Get(m.ctx, query, r.path)
		out := loaded{room: n, state: state, err: err, at: m.now()}
		if err == nil {
			out.rows, out.err = r.read(raw, out.at)
		}
		return out
	}
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tick:
		return m, tea.Batch(m.look(), m.wait())
	case loaded:
		m.take(msg)
	case answered:
		m.note = msg.text
		if msg.err != nil {
			m.note = msg.err.Error()
		}
		return m, m.look()
	case tea.KeyPressMsg:
		if m.writing != nil {
			return m, m.write(msg)
		}
		return m, m.key(msg.String())
	}
	return m, nil
}

// take shows what was read. After a failure the old rows stay, with their time.
func (m *model) take(got loaded) {
	m.busy[got.room] = false
	if got.room == sessions && got.state != m.state {
		return // of the filter before
	}
	l := &m.lists[got.room]
	if l.err = got.err; got.err != nil {
		return
	}
	l.rows, l.at = got.rows, got.at
	if len(l.rows) > 0 && m.picked(l) < 0 {
		l.pick = l.rows[0].id
	}
}

func (m *model) picked(l *list) int {
	return slices.IndexFunc(l.rows, func(r row) bool { return r.id == l.pick })
}

// key acts on a key outside of texts.
func (m *model) key(name string) tea.Cmd {
	m.note = ""
	switch name {
	case "q", "ctrl+c":
		return tea.Quit
	case "tab", "right", "]":
		return m.enter((m.at + 1) % len(m.rooms))
	case "shift+tab", "left", "[":
		return m.enter((m.at + len(m.rooms) - 1) % len(m.rooms))
	case "j", "down":
		m.move(1)
	case "k", "up":
		m.move(-1)
	case "pgdown":
		m.move(m.page())
	case "pgup":
		m.move(-m.page())
	case "home", "g":
		m.move(-len(m.lists[m.at].rows))
	case "end", "G":
		m.move(len(m.lists[m.at].rows))
	case "y", "n", "N", "a":
		return m.decide(name)
	case "f":
		return m.filter()
	default:
		if len(name) == 1 && name[0] > '0' && int(name[0]-'0') <= len(m.rooms) {
			return m.enter(int(name[0] - '1'))
		}
	}
	return nil
}

func (m *model) enter(n int) tea.Cmd {
	m.at = n
	return m.look()
}

// filter shows the sessions in the next state.
func (m *model) filter() tea.Cmd {
	if m.at != sessions {
		return nil
	}
	m.state = states[(slices.Index(states, m.state)+1)%len(states)]
	m.lists[sessions] = list{}
	m.busy[sessions] = false // an answer under way is of the old filter
	return m.look()
}

func (m *model) move(by int) {
	l := &m.lists[m.at]
	if len(l.rows) > 0 {
		l.pick = l.rows[max(0, min(m.picked(l)+by, len(l.rows)-1))].id
	}
}

// page is the number of rows of the list that show: the details below get at least a third of the screen.
func (m *model) page() int { return max((m.height-frame)*2/3, 1) }

// asking returns the selected question; nil in other rooms, and while the list may be old.
func (m *model) asking() *api.Question {
	l := &m.lists[m.at]
	if i := m.picked(l); m.at == questions && i >= 0 && l.err == nil {
		return l.rows[i].ask
	}
	return nil
}

// decide answers the selected question, or begins the text of the answer.
func (m *model) decide(key string) tea.Cmd {
	q := m.asking()
	if q == nil {
		return nil
	}
	words := q.Scope == api.ScopeAgent || q.Scope == event.ScopeClientTool // takes no approval without a text
	switch {
	case q.Cut:
		m.note = "It is too large to be shown here: what is not seen cannot be approved."
	case key == "y" && !words:
		return m.send(q, api.QuestionAnswer{Decision: event.DecisionApprove})
	case key == "n" && q.Scope != api.ScopeAgent:
		return m.send(q, api.QuestionAnswer{Decision: event.DecisionReject})
	case key == "N" && q.Scope != api.ScopeAgent:
		m.begin(event.DecisionReject, "why not")
	case key == "a" && q.Scope == api.ScopeAgent:
		m.begin(api.DecisionAnswer, "answer")
	case key == "a" && q.Scope == event.ScopeClientTool:
		m.begin(event.DecisionApprove, "result of the tool")
	default:
		m.note = "This question takes: " + takes(q)
	}
	return nil
}

func (m *model) begin(verdict, about string) {
	in := textinput.New()
	in.Prompt = about + " › "
	in.CharLimit = 4096
	in.Focus()
	m.writing, m.verdict = &in, verdict
}

// write passes a key to the text. Enter sends it, Esc drops it.
func (m *model) write(msg tea.KeyPressMsg) tea.Cmd {
	switch msg.String() {
	case "ctrl+c":
		return tea.Quit
	case "esc":
		m.writing = nil
		return nil
	case "enter":
		text, verdict := m.writing.Value(), m.verdict
		m.writing = nil
		if q := m.asking(); q != nil && text != "" {
			return m.send(q, worded(q, verdict, text))
		}
		return nil
	}
	in, cmd := m.writing.Update(msg)
	*m.writing = in
	return cmd
}

// worded returns the answer with a text, in the member that the scope of the question has for it.
func worded(q *api.Question, verdict, text string) api.QuestionAnswer {
	a := api.QuestionAnswer{Decision: verdict}
	switch {
	case q.Scope == api.ScopeAgent:
		if a.Message = json.RawMessage(text); !json.Valid(a.Message) {
			a.Message, _ = json.Marshal(text) //nolint:errchkjson // a string
		}
	case verdict == event.DecisionReject:
		a.Feedback = text
	default:
		a.Result = &text
	}
	return a
}

// send answers a question. It repeats the digest of the arguments that the person saw.
func (m *model) send(q *api.Question, a api.QuestionAnswer) tea.Cmd {
	a.ID, a.Digest, a.ClientID = uuid.NewString(), q.Digest, "waggle top"
	asked := q.ID
	return func() tea.Msg {
		body, err := json.Marshal(a)
		if err != nil {
			return answered{err: err}
		}
		raw, err := m.gate.Call(m.ctx, http.MethodPost, body, "questions", asked, "answer")
		if err != nil {
			return answered{err: socket.Answered(err)}
		}
		out, err := decode[api.QuestionOutcome](raw)
		return answered{text: "Answered: " + out.Decision, err: err}
	}
}

// takes names the keys that answer the question.
func takes(q *api.Question) string {
	switch q.Scope {
	case api.ScopeAgent:
		return "a answer"
	case event.ScopeClientTool:
		return "a result, n reject, N reject with a reason"
	}
	return "y approve, n reject, N reject with a reason"
}
