package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/waggle-dev/waggle/gateway/api/openapi"
	"github.com/waggle-dev/waggle/gateway/api/request"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/auth"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// installation is what people operate.
type installation struct {
	*parts
	configuration func() wire.SettingList                          // may be nil
	measures      func() wire.RateList                             // may be nil
	look          func(context.Context) (wire.Installation, error) // may be nil
}

// The parameters of the list of audit records, each of which has some 400 bytes.
var (
	recordLimit     = limit("Records", 100, 500)
	recordPrincipal = short("principal", "Subject of the principal.", 256)
	recordEntity    = short("entity", "Session, task, team or agent; of an API call the path.", 256)
)

func (i installation) routes() []Route {
	examine := Route{
		Method: "GET", Path: "/installation", ID: "showInstallation", Tag: "installation",
		Summary: "Check the installation as \"waggle doctor\" does, without the machines, and show the versions of all processes. For operators.",
		Answers: json200("The findings.", wire.Installation{}),
	}
	if i.look != nil {
		examine.Handler = i.server.Serve(operating(func(r *http.Request, _ *edge.Client) (any, error) { return i.look(r.Context()) }))
	}
	rates := Route{
		Method: "GET", Path: "/rates", ID: "listRates", Tag: "installation",
		Summary: "Show how often things happen in all processes, and how long they take. Processes that do not answer within a second are named. For operators.",
		Answers: json200("The rates.", wire.RateList{}),
	}
	if i.measures != nil {
		rates.Handler = i.server.Serve(operating(func(*http.Request, *edge.Client) (any, error) { return i.measures(), nil }))
	}
	settings := Route{
		Method: "GET", Path: "/config", ID: "listSettings", Tag: "installation",
		Summary: "Show the configuration of the answering gateway, without secrets, and the source of each setting. For operators.",
		Answers: json200("The settings.", wire.SettingList{}),
	}
	if i.configuration != nil {
		settings.Handler = i.server.Serve(operating(func(*http.Request, *edge.Client) (any, error) { return i.configuration(), nil }))
	}
	return append([]Route{
		examine, rates, settings,
		{
			Method: "POST", Path: "/reindex", ID: "reindex", Tag: "installation",
			Summary: "Rebuild a part of the index of the tenant's sessions, members or tasks, and of their questions, from the logs, for some seconds. Repeat it with the next of the answer, until an answer has none. For operators.",
			Body:    wire.Reindex{}, Required: true, Example: `{"kind":"session"}`,
			Answers: json200("The part of the work that is done.", wire.Reindexed{}), Faults: []fault.Code{fault.BadJSON, fault.InvalidField, fault.MessageTooBig},
			Handler: i.server.Serve(operating(i.reindex)),
		},
		{
			Method: "POST", Path: "/model/trials/{trial}", ID: "tryModel", Tag: "installation",
			Summary: "Try one ability of the model, by the number of the trial from 0: a streamed answer, a call of a tool, two calls at once, an answer in JSON. It costs some hundred tokens. For operators.",
			Answers: json200("The result.", wire.ModelTrial{}), Faults: []fault.Code{fault.NotFound}, Handler: i.server.Serve(operating(i.tryModel)),
		},
		{
			Method: "GET", Path: "/queues", ID: "listQueues", Tag: "installation", Summary: "Count the commands that wait for services, of all tenants. For operators.",
			Answers: json200("The queues.", wire.QueueList{}), Handler: i.server.Serve(operating(i.queues)),
		},
		{
			Method: "GET", Path: "/quotas", ID: "listQuotas", Tag: "installation",
			Summary: "Show how much of their quotas the principal and its tenant use. Operators see all principals of the tenant.",
			Answers: json200("The quotas, the most used first.", wire.QuotaList{}), Handler: i.server.Serve(i.quotas),
		},
	}, i.audits()...)
}

// audits returns the routes of the audit log.
func (i installation) audits() []Route {
	return []Route{
		{
			Method: "GET", Path: "/audit", ID: "listAuditRecords", Tag: "installation", Summary: "Read the audit records of the tenant, the newest first. For operators.",
			Query: []openapi.Parameter{
				recordPrincipal.Parameter,
				{Name: "action", About: "Action, as in the records.", Type: "string"},
				recordEntity.Parameter,
				before, recordLimit.Parameter,
			},
			Answers: json200("A page of records. With filters it may be short or empty and still have a next.", wire.AuditPage{}),
			Faults:  []fault.Code{fault.InvalidField}, Handler: i.server.Serve(operating(i.records)),
		},
		{
			Method: "POST", Path: "/audit/verify", ID: "verifyAudit", Tag: "installation",
			Summary: "Check that no record of the audit log, of any tenant, is missing, was changed or was moved, for some seconds. Repeat it with the next of the answer, until an answer has none. For operators.",
			Body:    wire.VerifyAudit{}, Required: true, Example: `{}`,
			Answers: json200("The findings so far.", wire.AuditCheck{}), Faults: []fault.Code{fault.BadJSON, fault.InvalidField, fault.MessageTooBig},
			Handler: i.server.Serve(operating(i.verify)),
		},
	}
}

// operating refuses requests of others than operators.
func operating(h respond.Handler) respond.Handler {
	return func(r *http.Request, who *edge.Client) (any, error) {
		if !who.Principal().Has(auth.RoleOperator) {
			return nil, fault.Newf(fault.Forbidden, "Only principals with the role operator may do this.")
		}
		return h(r, who)
	}
}

// pageRequest returns the page that the query asks for.
func pageRequest(q *query, who *edge.Client, limit count) cmd.PageRequest {
	return cmd.PageRequest{Tenant: who.Principal().Tenant, Limit: q.count(limit), Before: q.place()}
}

// queues answers with the commands that wait, by service.
func (i installation) queues(r *http.Request, who *edge.Client) (any, error) {
	return ask[wire.QueueList](r, who, cmd.Installation, cmd.ListQueues, struct{}{})
}

// quotas answers with the use of the quotas of the principal and its tenant; operators see those of all principals.
func (i installation) quotas(r *http.Request, who *edge.Client) (any, error) {
	p := who.Principal()
	in := cmd.UseRequest{Tenant: p.Tenant, Principal: p.Subject, All: p.Has(auth.RoleOperator)}
	return ask[wire.QuotaList](r, who, cmd.Installation, cmd.ListUse, in)
}

// records answers with a page of the audit records of the tenant that pass the filters.
func (i installation) records(r *http.Request, who *edge.Client) (any, error) {
	q := queryOf(r)
	in := cmd.RecordsRequest{
		PageRequest: pageRequest(q, who, recordLimit), Principal: q.text(recordPrincipal), Action: q.Get("action"), Entity: q.text(recordEntity),
	}
	if q.err != nil {
		return nil, q.err
	}
	if _, err := id.ParseName(in.Action); in.Action != "" && err != nil {
		return nil, fault.Newf(fault.InvalidField, "action must be the action of an audit record, such as api-call.").At("action").Wrap(err)
	}
	return ask[wire.AuditPage](r, who, cmd.Installation, cmd.ListRecords, in)
}

const (
	// verifyMaxWait bounds a part of a check of the audit log, which takes some seconds.
	verifyMaxWait = time.Minute
	// maxVerify bounds the body of its request, which holds the state of the check.
	maxVerify = 512 << 10
)

// verify has the next part of the audit log checked.
func (i installation) verify(r *http.Request, who *edge.Client) (any, error) {
	var b wire.VerifyAudit
	if err := request.DecodeKnown(r, maxVerify, &b); err != nil {
		return nil, err
	}
	var out wire.AuditCheck
	err := who.Ask(r.Context(), edge.Request{Service: cmd.Installation, Verb: cmd.VerifyRecords, In: b, Within: verifyMaxWait}, &out)
	return out, err
}

// trialMaxWait bounds one trial of a model: a local one may read its weights first.
const trialMaxWait = 3 * time.Minute

// tryModel has a worker try what its model can do.
func (i installation) tryModel(r *http.Request, who *edge.Client) (any, error) {
	n, err := strconv.Atoi(r.PathValue("trial"))
	if err != nil {
		return nil, fault.New(fault.NotFound)
	}
	var out wire.ModelTrial
	err = who.Ask(r.Context(), edge.Request{Service: cmd.Worker, Verb: cmd.TryModel, In: cmd.ModelTrial{Trial: n}, Within: trialMaxWait, Changes: true}, &out)
	return out, err
}

const (
	// reindexMaxWait bounds a part of the work on the index, which takes some seconds and a few long logs.
	reindexMaxWait = 2 * time.Minute
	// maxReindex bounds the body of its request.
	maxReindex = 4 << 10
)

// indexers are the services that write the entries of logs of a kind.
var indexers = map[string]id.Name{string(id.KindSession): cmd.Session, string(id.KindMember): cmd.Team, string(id.KindTask): cmd.Task}

// reindex has a service rebuild a part of the tenant's entries in the index.
func (i installation) reindex(r *http.Request, who *edge.Client) (any, error) {
	var b wire.Reindex
	if err := request.DecodeKnown(r, maxReindex, &b); err != nil {
		return nil, err
	}
	service, ok := indexers[b.Kind]
	if !ok {
		return nil, fault.Newf(fault.InvalidField, "kind must be one of session, member, task.").At("kind")
	}
	var out wire.Reindexed
	err := who.Ask(r.Context(), edge.Request{
		Service: service, Verb: cmd.Reindex, In: cmd.ReindexRequest{Tenant: who.Principal().Tenant, After: b.After}, Within: reindexMaxWait, Changes: true,
	}, &out)
	return out, err
}
