package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/proof"
)

// names are ids of another tenant, or ids that do not exist.
type names struct{ task, agent, agentName, capability, service, serviceName, client, token, call string }

// probe is one request with the names in it.
type probe struct {
	kind    string
	content func(names) object
}

// TestWhatAnotherTenantHasDoesNotExist: every request of every role that names something
// has the same answer for an id of another tenant as for an id that does not exist.
func TestWhatAnotherTenantHasDoesNotExist(t *testing.T) {
	t.Parallel()
	reds, blues := one.forTenant(t), one.forTenant(t)
	addr, blueKey := reds.addr, blues.key
	red, blue := reds.swarm(), blues.swarm()

	// Red has one of everything, and a task and a call that are open.
	agent := red.agent("red-agent", "Red Agent", nil, "red-work")
	service := red.service("red-service", "Red Service", nil, object{"id": "tool"})
	owner := red.client()
	hello := owner.Find("welcome", func(f client.SwarmFrame) bool { return f.Type == "orchestrator.client.welcome" })
	task := owner.Get("client.agent.task.create.response", "client.agent.task.create.request", object{"agentId": "red-agent", "taskData": 1}).Text("taskId")
	agent.Until("task.execute")
	agent.Say("service.task.execute", object{"serviceId": "red-service", "toolId": "tool", "params": object{}, "taskId": task})
	call := service.Until("service.task.execute").ID
	theirs := names{task, "red-agent", "Red Agent", "red-work", "red-service", "Red Service", hello.Text("clientId"), hello.Text("resumeToken"), call}
	nobodys := names{like(task), "ted-agent", "Ted Agent", "ted-work", "ted-service", "Ted Service", like(theirs.client), like(theirs.token), like(call)}

	// Blue tries all of it.
	asker, worker, helper := blue.client(), blue.agent("blue-agent", "Blue Agent", nil), blue.service("blue-service", "Blue Service", nil, object{"id": "tool"})
	own := asker.Get("client.agent.task.create.response", "client.agent.task.create.request", object{"agentId": "blue-agent", "taskData": 1}).Text("taskId")
	worker.Until("task.execute")
	probes := 0
	for _, role := range []struct {
		bee    *client.Swarm
		probes []probe
	}{{asker, clientProbes()}, {worker, agentProbes(own)}, {helper, serviceProbes()}} {
		for _, p := range role.probes {
			probes++
			want, got := verdict(role.bee, p.kind, p.content(nobodys)), verdict(role.bee, p.kind, p.content(theirs))
			require.Equal(t, plainly(want, nobodys), plainly(got, theirs), "%s", p.kind)
			t.Logf("%s: %s %s", p.kind, got.Type, got.Text("code"))
		}
	}
	var first [2]string // frame of who comes back with another's client id and token
	for i, n := range []names{nobodys, theirs} {
		c := client.DialSwarm(t, client.SwarmOptions{Role: proof.RoleClient, Addr: addr, Key: blueKey, Query: "clientId=" + n.client + "&resumeToken=" + n.token})
		first[i] = plainly(c.Find("first frame", func(client.SwarmFrame) bool { return true }), n)
		require.Contains(t, first[i], "CLIENT_NOT_FOUND")
	}
	require.Equal(t, first[0], first[1])
	for method, path := range map[string]string{http.MethodGet: "/api/v1/tasks/%s", http.MethodPost: "/api/v1/tasks/%s/cancel"} {
		probes++
		url := "http://" + addr + path
		require.Equal(t, plain(over(t, method, fmt.Sprintf(url, nobodys.task), blueKey), nobodys), plain(over(t, method, fmt.Sprintf(url, theirs.task), blueKey), theirs))
	}
	for _, list := range []string{"agents", "services", "clients", "tasks"} {
		require.NotContains(t, strings.ToLower(over(t, http.MethodGet, "http://"+addr+"/api/v1/"+list, blueKey)), "red", list)
	}
	t.Logf("%d requests", probes)

	// Nothing of that has reached red, and its task continues.
	service.Say("service.task.result", object{"taskId": call, "result": "own"})
	agent.Until("service.task.execute.response")
	agent.Say("agent.task.result", object{"taskId": task, "result": "own"})
	require.JSONEq(t, `"own"`, string(owner.Until("client.agent.task.result").Member("result")))
	require.NotContains(t, fmt.Sprint(owner.Got(), agent.Got(), service.Got()), "blue")
}

// TestATaskOfAnotherUser: a task does not exist for another user of the tenant, not even if an agent of that user has it. The agent
// tells of it all the same, and an operator may stop it.
func TestATaskOfAnotherUser(t *testing.T) {
	t.Parallel()
	reds := one.forTenant(t)
	others := swarmRig{t: t, addr: reds.addr, key: reds.key + "-other"}
	agent, asker, owner := others.agent("other-agent", "Other Agent", nil), others.client(), reds.swarm().client()
	task := give(t, owner, object{"agentId": "other-agent", "taskData": 1})
	agent.Until("task.execute")
	theirs := names{task, "other-agent", "Other Agent", "other-work", "other-service", "Other Service", "other-client", "other-token", "other-call"}
	nobodys := theirs
	nobodys.task = like(task)
	probes := 0
	for _, p := range clientProbes() {
		if _, about := p.content(theirs)["taskId"]; about {
			probes++
			want, got := verdict(asker, p.kind, p.content(nobodys)), verdict(asker, p.kind, p.content(theirs))
			require.Equal(t, plainly(want, nobodys), plainly(got, theirs), "%s", p.kind)
		}
	}
	require.Equal(t, 4, probes)
	url := reds.url("/api/v1/tasks/")
	require.NotContains(t, over(t, http.MethodGet, reds.url("/api/v1/tasks"), others.key), task)
	require.Contains(t, over(t, http.MethodGet, url+task, others.key), "404 ")

	agent.Say("task.notification", object{"taskId": task, "notificationType": "info", "message": "half"})
	owner.Until("task.notification")
	agent.Say("agent.task.result", object{"taskId": task, "result": "own"})
	require.JSONEq(t, `"own"`, string(owner.Until("client.agent.task.result").Member("result")))

	operator := keyOfTenant(reds.tenant.String()) + "-operator"
	task = give(t, owner, object{"agentId": "other-agent", "taskData": 2})
	require.Contains(t, over(t, http.MethodGet, url+task, operator), "200 ")
	require.Contains(t, over(t, http.MethodPost, url+task+"/cancel", operator), "200 ")
	for end := owner.Until("client.agent.task.result"); end.Text("taskId") != task; {
		end = owner.Until("client.agent.task.result")
	}
}

// unawaited are the messages that no error answers, whatever becomes of them.
var unawaited = []string{
	"agent.task.result", "task.result", "task.status", "task.error", "service.task.result", "service.error", "service.notification",
}

// verdict is the answer to a request: of a child task, which is accepted before it is looked
// at, its end.
func verdict(b *client.Swarm, kind string, content object) client.SwarmFrame {
	if slices.Contains(unawaited, kind) {
		b.Unanswered(kind, content)
		return client.SwarmFrame{Type: "nothing"}
	}
	id := b.Say(kind, content)
	f := b.Find("answer to "+kind, func(f client.SwarmFrame) bool { return f.RequestID == id || f.Text("inReplyTo") == id })
	switch f.Type {
	case "childagent.request.accepted":
		return b.Find("end of the child", func(end client.SwarmFrame) bool {
			return end.Type == "childagent.response" && end.Text("childTaskId") == f.Text("childTaskId")
		})
	}
	return f
}

func clientProbes() []probe {
	create := "client.agent.task.create.request"
	return []probe{
		{"client.agent.list.request", func(n names) object { return object{"filters": object{"name": n.agentName}} }},
		{"client.agent.list.request", func(n names) object { return object{"filters": object{"capabilities": []string{n.capability}}} }},
		{create, func(n names) object { return object{"agentId": n.agent, "taskData": 1} }},
		{create, func(n names) object { return object{"agentName": n.agentName, "taskData": 1} }},
		{create, func(n names) object { return object{"capabilities": []string{n.capability}, "taskData": 1} }},
		{"client.agent.task.status.request", func(n names) object { return object{"taskId": n.task} }},
		{"client.agent.task.status", func(n names) object { return object{"taskId": n.task} }},
		{"task.message", func(n names) object {
			return object{"taskId": n.task, "messageType": "input_response", "message": "blue"}
		}},
		{"client.agent.task.cancel.request", func(n names) object { return object{"taskId": n.task} }},
		{"client.mcp.server.list.request", func(n names) object { return object{"filters": object{"type": n.service}} }},
		{"mcp.server.tools", func(n names) object { return object{"serverId": n.service} }},
		{"mcp.tool.execute", func(n names) object { return object{"serverId": n.service, "toolName": "tool", "parameters": object{}} }},
		{"client.list", func(n names) object { return object{"filters": object{"name": n.client}} }},
		{"client.message", func(n names) object { return object{"targetClientId": n.client, "messageType": "x", "data": "blue"} }},
		{"client.register", func(n names) object { return object{"clientId": n.client, "resumeToken": n.token} }},
	}
}

func agentProbes(own string) []probe {
	of := func(kind string, more object) probe {
		return probe{kind, func(n names) object {
			c := object{"taskId": n.task}
			for k, v := range more {
				c[k] = v
			}
			return c
		}}
	}
	within := func(task string) func(names) object {
		return func(n names) object {
			c := object{"serviceId": n.service, "serverId": n.service, "toolId": "tool", "toolName": "tool", "params": object{}, "parameters": object{}}
			if c["taskId"] = task; task == "" {
				c["taskId"] = n.task
			}
			return c
		}
	}
	return []probe{
		of("agent.task.result", object{"result": "blue"}), of("task.result", object{"result": "blue"}),
		of("task.status", object{"status": "started"}), of("task.message", object{"message": object{"message": "blue"}}),
		of("task.requestmessage", object{"message": "blue?"}), of("task.error", object{"error": "blue"}),
		of("task.notification", object{"notificationType": "info", "message": "blue"}),
		{"agent.agent.list.request", func(n names) object { return object{"filters": object{"name": n.agentName}} }},
		{"agent.service.list.request", func(n names) object { return object{"filters": object{"name": n.serviceName}} }},
		{"service.tools.list", func(n names) object { return object{"serviceId": n.service} }},
		{"service.tools.list", func(n names) object { return object{"serviceId": n.serviceName} }},
		{"service.task.execute", within(own)},
		{"service.task.execute", within("")},
		{"mcp.tool.execute", within(own)},
		{"mcp.tool.execute", within("")},
		{"mcp.tools.list", func(n names) object { return object{"serverId": n.service} }},
		{"agent.request", func(n names) object {
			return object{"targetAgent": n.agentName, "taskData": object{"x": 1}, "parentTaskId": own}
		}},
		{"agent.request", func(n names) object {
			return object{"targetAgentId": n.agent, "taskData": object{"x": 1}, "parentTaskId": own}
		}},
		{"agent.request", func(n names) object {
			return object{"targetAgent": "Blue Agent", "taskData": object{"x": 1}, "parentTaskId": n.task}
		}},
	}
}

func serviceProbes() []probe {
	return []probe{
		{"service.task.result", func(n names) object { return object{"taskId": n.call, "result": "blue"} }},
		{"service.task.notification", func(n names) object {
			return object{"taskId": n.call, "notification": object{"type": "info", "message": "blue"}}
		}},
		{"service.error", func(n names) object { return object{"taskId": n.call, "error": "blue"} }},
		{"service.notification", func(n names) object {
			return object{"notification": object{"type": "info", "message": "blue"}, "metadata": object{"clientId": n.client}}
		}},
	}
}

// like returns an id of the same form that does not exist.
func like(id string) string {
	last := byte('0')
	if id[len(id)-1] == last {
		last = '1'
	}
	return id[:len(id)-1] + string(last)
}

var moving = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z|[0-9a-f]{8}-[0-9a-f-]{27}|call_[0-9a-f]+|"executionTime":\d+|"frame-\d+"`)

// plainly is an answer without what differs from one time to the next.
func plainly(f client.SwarmFrame, n names) string { return f.Type + " " + plain(string(f.Content), n) }

func plain(text string, n names) string {
	for _, name := range []string{n.token, n.task, n.call, n.client, n.agentName, n.agent, n.serviceName, n.service, n.capability} {
		text = strings.ReplaceAll(text, name, "<name>")
	}
	return moving.ReplaceAllString(text, "<moves>")
}

// available waits for the services that answer for such lists: processes say that they
// run before everything in them does.
func available(t *testing.T, addr, key string, lists ...string) {
	t.Helper()
	for _, list := range lists {
		process.Eventually(t, "the service of "+list, func() bool { return over(t, http.MethodGet, "http://"+addr+"/api/v1/"+list, key) != "" })
	}
}

// over returns an answer of the API, empty without a gateway.
func over(t *testing.T, method, url, key string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), process.MaxWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	if resp.StatusCode >= http.StatusInternalServerError {
		return ""
	}
	return fmt.Sprint(resp.StatusCode, " ", string(body))
}
