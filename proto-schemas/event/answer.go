package event

// Values of MessageCompletedData.StopReason.
const (
	StopEnd       = "end"        // the text is complete
	StopToolCalls = "tool_calls" // the model waits for the results of its calls
	StopLength    = "length"     // the text was cut at the limit of tokens
	StopFiltered  = "filtered"   // a filter of the provider withheld the rest
	StopRefused   = "refused"    // the model refused to say more
	StopOther     = "other"      // for a reason that this version does not know
	StopStopped   = "stopped"    // its run or step was stopped, or failed, before the text was complete
)

// StopReasons lists the values of MessageCompletedData.StopReason.
var StopReasons = []string{StopEnd, StopToolCalls, StopLength, StopFiltered, StopRefused, StopOther, StopStopped}

// Codes of the notices that tell people that an answer is not what it seems. Each is about one message of a run.
const (
	AnswerCut      = "ANSWER_CUT"
	AnswerWithheld = "ANSWER_WITHHELD"
	AnswerRefused  = "ANSWER_REFUSED"
	AnswerUnsure   = "ANSWER_UNSURE"
)

// ToolLeftOut is the code of the notice that the model's service takes no tools, so that the model is offered none.
const ToolLeftOut = "TOOL_LEFT_OUT"

// ModelInstead is the code of the notice that another model answers, because the usual one has failed.
const ModelInstead = "MODEL_INSTEAD"

// AnswerNotice returns the notice about a message that ended for the reason, in English; ok is false if its text is complete.
func AnswerNotice(reason, detail string) (code, text string, ok bool) {
	switch reason {
	case StopLength:
		return AnswerCut, "The answer is cut: it reached the limit of tokens.", true
	case StopFiltered:
		return AnswerWithheld, "The answer is incomplete: a content filter of the model's service withheld the rest.", true
	case StopRefused:
		return AnswerRefused, "The model refused to answer further.", true
	case StopOther:
		return AnswerUnsure, "The answer may be incomplete: the model's service ended it for an unknown reason (" + detail + ").", true
	}
	return "", "", false
}

// TokenDetails splits the tokens of a model. Absent members are zero or unknown.
type TokenDetails struct {
	CachedTokens     int64 `json:"cached_tokens,omitempty"`      // of the input: read from the provider's cache
	CacheWriteTokens int64 `json:"cache_write_tokens,omitempty"` // of the input: written to the provider's cache
	ReasoningTokens  int64 `json:"reasoning_tokens,omitempty"`   // of the output: reasoning
}

// Plus returns the sums.
func (d TokenDetails) Plus(o TokenDetails) TokenDetails {
	return TokenDetails{
		CachedTokens: d.CachedTokens + o.CachedTokens, CacheWriteTokens: d.CacheWriteTokens + o.CacheWriteTokens, ReasoningTokens: d.ReasoningTokens + o.ReasoningTokens,
	}
}
