package subject

import (
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// IndexPosition returns the subject of the positions in the shards up to which the index of a kind is complete.
func IndexPosition(k id.Kind) string { return "index.position." + string(k) }

// Index returns the subject of the log's summary in the index.
func (l Log) Index() string { return "index." + l.Name() }

// IndexFilter returns the filter of the summaries of a tenant's logs of a kind.
func IndexFilter(t id.Tenant, k id.Kind) string {
	return "index." + t.String() + "." + string(k) + ".*"
}

// IndexOf returns the filter of the summaries of all logs of a kind.
func IndexOf(k id.Kind) string { return "index.*." + string(k) + ".*" }

// ParseIndex parses a subject that Log.Index returns.
func ParseIndex(s string) (Log, error) {
	name, ok := strings.CutPrefix(s, "index.")
	if !ok {
		return Log{}, invalid("index", s)
	}
	return ParseName(name)
}

// Parts of the questions in the index.
const (
	QuestionsOpen = "open" // questions that wait for an answer
	QuestionsOver = "over" // questions that were answered, have expired or were withdrawn
)

// Question returns the subject of a question of the log in a part of the index.
func (l Log) Question(part string, input id.Entity) string {
	return l.Index() + "." + part + "." + input.String()
}

// Questions returns the filter of the log's questions in a part of the index.
func (l Log) Questions(part string) string { return l.Index() + "." + part + ".*" }

// QuestionFilter returns the filter of a tenant's questions in a part of the index.
func QuestionFilter(t id.Tenant, part string) string {
	return "index." + t.String() + ".*.*." + part + ".*"
}

// QuestionsOf returns the filter of all questions of logs of a kind.
func QuestionsOf(k id.Kind) string { return "index.*." + string(k) + ".*.*.*" }

// TenantQuestions returns the filter of the questions of a tenant's logs of a kind.
func TenantQuestions(t id.Tenant, k id.Kind) string {
	return "index." + t.String() + "." + string(k) + ".*.*.*"
}

// OpenQuestionsOf returns the filter of the open questions of all logs of a kind.
func OpenQuestionsOf(k id.Kind) string { return "index.*." + string(k) + ".*." + QuestionsOpen + ".*" }

// ParseQuestion parses a subject that Log.Question returns.
func ParseQuestion(s string) (log Log, part string, input id.Entity, err error) {
	tokens := strings.Split(s, ".")
	if len(tokens) != 6 {
		return Log{}, "", id.Entity{}, invalid("question", s)
	}
	if log, err = ParseIndex(strings.Join(tokens[:4], ".")); err != nil {
		return Log{}, "", id.Entity{}, err
	}
	input, err = id.ParseEntity(tokens[5])
	return log, tokens[4], input, err
}

// KindFilter returns the filter of the logs of a kind in the partition, of all tenants.
func (p Partition) KindFilter(k id.Kind) string {
	return "evt." + p.String() + ".*." + string(k) + ".*"
}

// LiveType returns the filter of the announcements of one type in all logs of a kind.
func LiveType(k id.Kind, eventType string) string { return "live.*." + string(k) + ".*." + eventType }
