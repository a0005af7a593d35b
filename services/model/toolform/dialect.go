package toolform

// Dialect is the form of schemas that a provider takes.
type Dialect int

// The dialects. All of them have an object at the top, without alternatives next to it, and no keyword that breaks the rules
// of JSON Schema 2020-12.
const (
	// Plain is the form for servers of which nothing else is known.
	Plain Dialect = iota
	// OpenAI has items in every array, too.
	OpenAI
	// Anthropic has arguments named [a-zA-Z0-9_.-]{1,64}, too.
	Anthropic
	// Gemini is the part of OpenAPI 3.0 that Google's models read, on their own API and on the one like OpenAI's: one type
	// each, no references, and only known keywords. Their own API wants no parameters at all where Bare says so.
	Gemini
)

const (
	// room bounds a form in bytes, about: parts that references would repeat beyond it are left open. The largest schemas of
	// widely used servers are below 20 KiB.
	room = 128 << 10
	// steps bounds the schemas that are put together: a small document can ask for any number.
	steps = 10_000
	// deepest bounds the depth of the input; the registries of tools have lower limits.
	deepest = 200
	// largest bounds the input.
	largest = 256 << 10
)
