package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/waggle-dev/waggle/gateway/api/openapi"
	"github.com/waggle-dev/waggle/gateway/api/request"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/auth"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

const (
	// defaultRecords and maxRecords bound the audit records of one page, some 400 bytes each.
	defaultRecords = 100
	maxRecords     = 500
	// maxRecordFilter bounds the texts that a filter of audit records compares with.
	maxRecordFilter = 256
)

// listQueues answers with the commands that wait, by service.
func (a *API) listQueues(r *http.Request, who *edge.Client) (any, error) {
	return ask[wire.QueueList](r, who, cmd.Installation, cmd.ListQueues, struct{}{})
}

// listQuotas answers with the use of the quotas of the principal and its tenant; operators see those of all principals.
func (a *API) listQuotas(r *http.Request, who *edge.Client) (any, error) {
	p := who.Principal()
	in := cmd.UseRequest{Tenant: p.Tenant, Principal: p.Subject, All: p.Has(auth.RoleOperator)}
	return ask[wire.QuotaList](r, who, cmd.Installation, cmd.ListUse, in)
}

// listRecords answers with a page of the audit records of the tenant that pass the filters.
func (a *API) listRecords(r *http.Request, who *edge.Client) (any, error) {
	page, err := pageRequest(r, who, defaultRecords, maxRecords)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	in := cmd.RecordsRequest{PageRequest: page, Principal: q.Get("principal"), Action: q.Get("action"), Entity: q.Get("entity")}
	for name, value := range map[string]string{"principal": in.Principal, "entity": in.Entity} {
		if len(value) > maxRecordFilter {
			return nil, fault.Newf(fault.InvalidField, "%s must be at most %d bytes.", name, maxRecordFilter).At(name)
		}
	}
	if _, err := id.ParseName(in.Action); in.Action != "" && err != nil {
		return nil, fault.Newf(fault.InvalidField, "action must be the action of an audit record, such as api-call.").At("action").Wrap(err)
	}
	return ask[wire.AuditPage](r, who, cmd.Installation, cmd.ListRecords, in)
}

// settings serves the configuration in force.
func (a *API) settings() http.HandlerFunc {
	if a.cfg.Settings == nil {
		return nil
	}
	return operating(func(a *API, _ *http.Request, _ *edge.Client) (any, error) { return a.cfg.Settings(), nil })(a)
}

// rates serves the rates of all processes.
func (a *API) rates() http.HandlerFunc {
	if a.cfg.Rates == nil {
		return nil
	}
	return operating(func(a *API, _ *http.Request, _ *edge.Client) (any, error) { return a.cfg.Rates(), nil })(a)
}

// examine serves what a look at the installation finds.
func (a *API) examine() http.HandlerFunc {
	if a.cfg.Examine == nil {
		return nil
	}
	return operating(func(a *API, r *http.Request, _ *edge.Client) (any, error) { return a.cfg.Examine(r.Context()) })(a)
}

// trialPatience bounds one trial of a model: a local one may read its weights first.
const trialPatience = 3 * time.Minute

// tryModel has a worker try what its model can do.
func (a *API) tryModel(r *http.Request, who *edge.Client) (any, error) {
	n, err := strconv.Atoi(r.PathValue("trial"))
	if err != nil {
		return nil, fault.New(fault.NotFound)
	}
	var out wire.ModelTrial
	err = who.Ask(r.Context(), edge.Request{Service: cmd.Worker, Verb: cmd.TryModel, In: cmd.ModelTrial{Trial: n}, Within: trialPatience, Changes: true}, &out)
	return out, err
}

const (
	// reindexPatience bounds a part of the work on the index, which takes some seconds and a few long logs.
	reindexPatience = 2 * time.Minute
	// maxReindex bounds the body of its request.
	maxReindex = 4 << 10
)

// indexers are the services that write the entries of logs of a kind.
var indexers = map[string]id.Name{string(id.KindSession): cmd.Session, string(id.KindMember): cmd.Team, string(id.KindTask): cmd.Task}

// reindex has a service rebuild a part of the tenant's entries in the index.
func (a *API) reindex(r *http.Request, who *edge.Client) (any, error) {
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
		Service: service, Verb: cmd.Reindex, In: cmd.ReindexRequest{Tenant: who.Principal().Tenant, After: b.After}, Within: reindexPatience, Changes: true,
	}, &out)
	return out, err
}

func installationRoutes() []Route {
	return []Route{
		{
			Method: "POST", Path: "/reindex", ID: "reindex", Tag: "installation",
			Summary: "Rebuild a part of the index of the tenant's sessions, members or tasks, and of their questions, from the logs, for some seconds. Repeat it with the next of the answer, until an answer has none. For operators.",
			Body:    wire.Reindex{}, Required: true,
			Answers: json200("The part of the work that is done.", wire.Reindexed{}), Faults: []fault.Code{fault.BadJSON, fault.InvalidField, fault.MessageTooBig},
			Handler: operating((*API).reindex),
		},
		{
			Method: "POST", Path: "/model/trials/{trial}", ID: "tryModel", Tag: "installation",
			Summary: "Try one ability of the model, by the number of the trial from 0: a streamed answer, a call of a tool, two calls at once, an answer in JSON. It costs some hundred tokens. For operators.",
			Answers: json200("The result.", wire.ModelTrial{}), Faults: []fault.Code{fault.NotFound}, Handler: operating((*API).tryModel),
		},
		{
			Method: "GET", Path: "/installation", ID: "showInstallation", Tag: "installation",
			Summary: "Check the installation as \"waggle doctor\" does, without the machines, and show the versions of all processes. For operators.",
			Answers: json200("The findings.", wire.Installation{}), Handler: (*API).examine,
		},
		{
			Method: "GET", Path: "/rates", ID: "listRates", Tag: "installation",
			Summary: "Show how often things happen in all processes, and how long they take. Processes that do not answer within a second are named. For operators.",
			Answers: json200("The rates.", wire.RateList{}), Handler: (*API).rates,
		},
		{
			Method: "GET", Path: "/queues", ID: "listQueues", Tag: "installation", Summary: "Count the commands that wait for services, of all tenants. For operators.",
			Answers: json200("The queues.", wire.QueueList{}), Handler: operating((*API).listQueues),
		},
		{
			Method: "GET", Path: "/quotas", ID: "listQuotas", Tag: "installation",
			Summary: "Show how much of their quotas the principal and its tenant use. Operators see all principals of the tenant.",
			Answers: json200("The quotas, the most used first.", wire.QuotaList{}), Handler: authenticated((*API).listQuotas),
		},
		{
			Method: "GET", Path: "/audit", ID: "listAuditRecords", Tag: "installation", Summary: "Read the audit records of the tenant, the newest first. For operators.",
			Query: []openapi.Parameter{
				{Name: "principal", About: "Subject of the principal.", Type: "string"},
				{Name: "action", About: "Action, as in the records.", Type: "string"},
				{Name: "entity", About: "Session, task, team or agent; of an API call the path.", Type: "string"},
				pageQuery[0],
				{Name: "limit", About: "Records of the page; 100 by default.", Type: "integer", Maximum: maxRecords},
			},
			Answers: json200("A page of records. With filters it may be short or empty and still have a next.", wire.AuditPage{}),
			Faults:  []fault.Code{fault.InvalidField}, Handler: operating((*API).listRecords),
		},
		{
			Method: "GET", Path: "/config", ID: "listSettings", Tag: "installation",
			Summary: "Show the configuration of the answering gateway, without secrets, and the source of each setting. For operators.",
			Answers: json200("The settings.", wire.SettingList{}), Handler: (*API).settings,
		},
	}
}
