package trial_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/modeltest"
	"github.com/waggle-dev/waggle/services/model/openai"
	"github.com/waggle-dev/waggle/services/model/scripted"
	"github.com/waggle-dev/waggle/services/model/trial"
)

func open(env model.Env) (model.Model, error) { return openai.New(openai.Standard, "x", env) }

// able answers the trials as a good model does.
func able(x *scripted.Exchange) scripted.Reply {
	text := x.Prompt.Messages[0].Content
	city := func(id, name string) scripted.Call {
		return scripted.Call{ID: id, Name: "get_weather", Arguments: `{"city":"` + name + `"}`}
	}
	switch {
	case x.Prompt.Schema != nil:
		return scripted.Stream(scripted.Text(`{"country":"France","capital":"Paris"}`), scripted.Usage(9, 4))
	case strings.Contains(text, "Oslo") && len(x.Prompt.Tools) > 0:
		return scripted.Stream(scripted.Calls(0, city("a", "Paris"), city("b", "Oslo")), scripted.Usage(9, 4))
	case len(x.Prompt.Messages) > 1:
		return scripted.Stream(scripted.Text("It is sunny."), scripted.Usage(9, 4))
	case len(x.Prompt.Tools) > 0:
		return scripted.Stream(scripted.Calls(0, city("a", "Paris")), scripted.Usage(9, 4))
	}
	return scripted.Stream(scripted.Text("one, ", "two"), scripted.Usage(9, 4))
}

// Each weakness of a model shows, with what to do about it.
func TestTrials(t *testing.T) {
	type want map[string]trial.Grade
	good := want{"answer": trial.Works, "tool call": trial.Works, "parallel calls": trial.Works, "JSON answer": trial.Works}
	with := func(name string, g trial.Grade) want {
		out := want{}
		for k, v := range good {
			out[k] = v
		}
		out[name] = g
		return out
	}
	for name, c := range map[string]struct {
		script scripted.Script
		want   want
		says   string
	}{
		"a good model": {able, good, "one call for each city"},
		"no server's key": {
			scripted.Always(scripted.Fail(http.StatusUnauthorized, "invalid_api_key", "Incorrect API key")),
			want{"answer": trial.Missing},
			"correct the provider's api_key",
		},
		"no tools": {func(x *scripted.Exchange) scripted.Reply {
			if len(x.Prompt.Tools) > 0 {
				return scripted.Fail(http.StatusBadRequest, "api_error", "x does not support tools")
			}
			return able(x)
		}, want{"answer": trial.Works, "tool call": trial.Missing, "parallel calls": trial.Missing, "JSON answer": trial.Works}, "--enable-auto-tool-choice"},
		"one call at a time": {func(x *scripted.Exchange) scripted.Reply {
			if strings.Contains(x.Prompt.Messages[0].Content, "Oslo") {
				return scripted.Stream(scripted.Calls(0, scripted.Call{ID: "a", Name: "get_weather", Arguments: `{"city":"Oslo"}`}))
			}
			return able(x)
		}, with("parallel calls", trial.Doubts), "calls in one message: 1"},
		"no JSON": {func(x *scripted.Exchange) scripted.Reply {
			if x.Prompt.Schema != nil {
				return scripted.Stream(scripted.Text("Paris, of course"))
			}
			return able(x)
		}, with("JSON answer", trial.Missing), "structured output"},
		"JSON in a block": {func(x *scripted.Exchange) scripted.Reply {
			if x.Prompt.Schema != nil {
				return scripted.Stream(scripted.Text("```json\n{\"country\":\"France\",\"capital\":\"Paris\"}\n```"))
			}
			return able(x)
		}, with("JSON answer", trial.Doubts), "code block"},
		"in one piece, without usage": {func(x *scripted.Exchange) scripted.Reply {
			if len(x.Prompt.Tools) == 0 && x.Prompt.Schema == nil {
				return scripted.Stream(scripted.Text("one, two"))
			}
			return able(x)
		}, with("answer", trial.Doubts), "buffering"},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := modeltest.Serve(t, open, model.Env{}, c.script)
			got, all := want{}, ""
			trial.Run(t.Context(), m, time.Now, func(r trial.Result) {
				got[r.Name] = r.Grade
				all += r.Is + " " + r.Do + "\n"
				require.Equal(t, r.Grade == trial.Works, r.Do == "")
			})
			require.Equal(t, c.want, got, all)
			require.Contains(t, all, c.says)
		})
	}
}
