package gen

import (
	"strings"
	"testing"
)

func TestPythonTypesHaveTheMembersOfTheSchema(t *testing.T) {
	bundle := `{"$defs": {
		"event": {"description": "All have it.", "properties": {"id": {"type": "string"}, "type": {"type": "string"}, "data": {"type": "object"}, "from": {"type": "integer"}}, "required": ["id", "type", "data"]},
		"run.ended": {"description": "A run \\ ended: \"no\"", "allOf": [{"$ref": "#/$defs/event"}], "properties": {"type": {"const": "run.ended"}, "data": {"$ref": "#/$defs/EndedData"}}},
		"error": {"description": "A direct message.", "properties": {}},
		"EndedData": {"description": "It ended.", "allOf": [{"$ref": "#/$defs/Part"}], "properties": {"why": {"type": "string", "enum": ["a", "b"], "description": "the reason"}, "is": {"$ref": "#/$defs/Part"}, "all": {"type": "array", "items": {"type": "number"}}, "any": {}}, "required": ["why", "is"]},
		"Part": {"description": "A part.", "properties": {"step": {"type": "boolean"}}}}}`
	got, err := pythonEvents([]byte(bundle))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"_EventHeadOptionalWords = TypedDict(\"_EventHeadOptionalWords\", {\"from\": \"int\"}, total=False)\n",
		"class EventHead(_EventHeadOptionalWords):\n    \"\"\"All have it.\"\"\"\n\n    id: str\n",
		"class RunEnded(EventHead):\n    \"\"\"A run \\\\ ended: \"no\" \"\"\"\n\n    type: Literal[\"run.ended\"]\n    data: EndedData\n",
		"class Part(TypedDict, total=False):\n    \"\"\"A part.\"\"\"\n\n    step: bool\n\n\n_EndedDataWords = TypedDict(\"_EndedDataWords\", {\"is\": \"Part\"})\n",
		"class _EndedDataRequired(Part, _EndedDataWords):\n    why: Literal[\"a\", \"b\"]\n    \"\"\"the reason\"\"\"\n",
		"class EndedData(_EndedDataRequired, total=False):\n    \"\"\"It ended.\"\"\"\n\n    all: list[float]\n    any: Any\n",
		"CanonicalEvent = Union[\n    RunEnded,\n]\n",
		"EVENT_TYPES: tuple[EventType, ...] = (\n    \"run.ended\",\n)\n",
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if strings.Contains(string(got), "A direct message.") {
		t.Error("a direct message is no event of a log")
	}
}

func TestPythonFaultsAreClasses(t *testing.T) {
	got := string(pythonFaults())
	for _, want := range []string{
		"class RateLimitedError(WaggleError):\n", "    default_code = \"RATE_LIMITED\"\n    default_retryable = True\n",
		"    \"INTERNAL\": InternalError,\n", "    \"WaggleError\",\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}
