package subject

import (
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Form describes one family of subjects for documentation and checks.
type Form struct {
	Pattern string // tokens in angle brackets vary; <type> may hold several
	Kept    string // the stream that stores it, or its transport
	Meaning string
	Example string
}

// Catalogue lists every family of subjects that this package builds.
var Catalogue = []Form{
	{
		"evt.<p>.<tenant>.<kind>.<id>", "streams EVT_00 to EVT_15",
		"The log of one entity. Its events are stored here, and nowhere else.", DefaultPartitions.Event(exampleLog),
	},
	{
		"live.<tenant>.<kind>.<id>.<type>", "core NATS, at most once",
		"The same event, announced after it was stored. For viewers and monitors.", exampleLog.Live("tool.called"),
	},
	{
		"cmd.<service>.<p>.<tenant>.<key>.<verb>", "stream " + StreamCommands + ", work queue",
		"Ask a service for something. Commands of one key are in one partition.", DefaultPartitions.Command(exampleCommand),
	},
	{
		"timer.set.<service>.<tenant>.<key>.<name>", "stream " + TimerStream(exampleTimer.Service),
		"A message schedule. Publishing again replaces it.", exampleTimer.Set(),
	},
	{
		"timer.fire.<service>.<tenant>.<key>.<name>", "stream " + TimerStream(exampleTimer.Service),
		"The schedule, due.", exampleTimer.Fire(),
	},
	{
		"rpc.<service>.<verb>", "NATS micro",
		"Ask and wait for the answer.", RPC(id.MustName("tools"), id.MustName("call")),
	},
	{
		"direct.<gateway>.<connection>", "core NATS, at most once",
		"A direct message: for one connection, in no log.", Direct(id.MustName("gateway-1"), id.MustName("c42")),
	},
	{
		"dead.<service>.<tenant>.<key>.<verb>", "stream " + StreamDead,
		"A command that was given up, with the reason.", exampleCommand.Dead(),
	},
	{
		"audit.<tenant>.<action>", "stream " + StreamAudit,
		"Principal and action, without contents.", Audit(id.DefaultTenant, id.MustName("command")),
	},
	{
		"index.<tenant>.<kind>.<id>", "stream " + StreamIndex,
		"The summary of a log for lists. Each change moves it to the end of the stream.", exampleLog.Index(),
	},
	{
		"index.<tenant>.<kind>.<id>.<part>.<input>", "stream " + StreamIndex,
		"A question of the log to people for lists. The part is open or over.", exampleLog.Question(QuestionsOpen, id.EntityFromExternal("approve_call_1")),
	},
	{
		"$O." + BucketPayloads + ".M.<name>", "stream " + StreamPayloads + ", object store " + BucketPayloads,
		"Describes an object: data that does not fit into an event. Its name, here in base64, is <tenant>.<kind>.<id>.<SHA-256>.",
		PayloadMeta(examplePayload),
	},
	{
		"$O." + BucketPayloads + ".C.<object>", "stream " + StreamPayloads + ", object store " + BucketPayloads,
		"The parts of the object, in order.", PayloadParts("Vk3bJcV2cXhNqGfR1uWm7a"),
	},
}

var (
	exampleLog = Log{
		Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("0199c3d2-41f0-7a53-8e0b-5d1c9a7e2f10"),
	}
	exampleCommand = Command{
		Service: id.MustName("pipeline"), Tenant: exampleLog.Tenant, Key: exampleLog.Entity, Verb: id.MustName("send_message"),
	}
	examplePayload = exampleLog.Name() + "." + strings.Repeat("0123456789abcdef", DigestHex/16)
	exampleTimer   = Timer{
		Service: id.MustName("session"), Tenant: exampleLog.Tenant, Key: exampleLog.Entity, Name: id.MustName("expire"),
	}
)
