package fault_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// standard are the close codes of RFC 6455 and its registry that a server may send, by whether the client should
// reconnect.
var standard = map[int]bool{
	1003: false, // an unknown kind of data
	1007: false, // data that does not fit its kind
	1008: true,  // policy; here: too slow
	1009: false, // too big
	1012: true,  // service restart
	1013: true,  // try again later
	4004: false, // of the protocol of agent teams: unknown team or agent
}

func TestEveryCodeIsInTheCatalogueOnce(t *testing.T) {
	listed := map[fault.Code]int{}
	for _, e := range fault.Catalogue {
		listed[e.Code]++
	}
	codes := constants(t)
	for _, c := range codes {
		if listed[c] != 1 {
			t.Errorf("%s is in the catalogue %d times", c, listed[c])
		}
		if fault.Lookup(c).Code != c {
			t.Errorf("looking up %s gives %s", c, fault.Lookup(c).Code)
		}
	}
	if len(codes) != len(fault.Catalogue) {
		t.Errorf("%d constants, %d entries", len(codes), len(fault.Catalogue))
	}
	if fault.Lookup("NO_SUCH_CODE").Code != fault.Internal {
		t.Error("an unknown code is not internal")
	}
}

func TestEntriesAreSane(t *testing.T) {
	form := regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
	for _, e := range fault.Catalogue {
		if !form.MatchString(string(e.Code)) {
			t.Errorf("%s: codes are upper case words", e.Code)
		}
		if e.Status < 400 || e.Status > 599 {
			t.Errorf("%s: HTTP status %d is no error", e.Code, e.Status)
		}
		if (e.Status < 500) != (e.Blame == fault.Client) {
			t.Errorf("%s: status %d blames %s", e.Code, e.Status, e.Blame)
		}
		closing(t, e)
		message(t, e)
	}
}

func closing(t *testing.T, e fault.Entry) {
	t.Helper()
	comeBack, known := standard[e.Close]
	switch {
	case e.Close == 0:
		return
	case known:
	case e.Close >= 4000 && e.Close < 4400:
		comeBack = true
	case e.Close >= 4400 && e.Close < 4500:
		if e.Close != 4000+e.Status {
			t.Errorf("%s: close code %d does not go with status %d", e.Code, e.Close, e.Status)
		}
	default:
		t.Errorf("%s: close code %d is out of range", e.Code, e.Close)
	}
	if comeBack != e.Retryable {
		t.Errorf("%s: close code %d and retryable %v contradict each other", e.Code, e.Close, e.Retryable)
	}
}

// message checks that the text names the problem, then the remedy.
func message(t *testing.T, e fault.Entry) {
	t.Helper()
	sentences := strings.Count(e.Message, ". ") + 1
	if sentences < 2 || !strings.HasSuffix(e.Message, ".") {
		t.Errorf("%s: the message does not say what to do: %q", e.Code, e.Message)
	}
	if strings.ContainsAny(e.Message, "\n\t%") || len(e.Message) > 160 {
		t.Errorf("%s: the message is not one plain line: %q", e.Code, e.Message)
	}
}

func TestFault(t *testing.T) {
	cause := errors.New("dial 10.0.0.7: refused")
	base := fault.New(fault.InvalidField)
	f := base.Wrap(cause).At("content")
	if base.Field != "" || base.Unwrap() != nil {
		t.Error("Wrap or At changed the original")
	}
	if !errors.Is(f, cause) || !errors.Is(fmt.Errorf("decode: %w", f), fault.New(fault.InvalidField)) || errors.Is(f, fault.New(fault.BadJSON)) {
		t.Error("errors.Is is wrong")
	}
	if f.Field != "content" || strings.Contains(f.Public(), "10.0.0.7") || !strings.Contains(f.Error(), "10.0.0.7") {
		t.Errorf("public %q, for logs %q", f.Public(), f.Error())
	}
	if g := fault.Newf(fault.QueueFull, "%d wait", 16); g.Public() != "16 wait" || !g.Retryable() {
		t.Errorf("got %q", g.Public())
	}
}

func TestFrom(t *testing.T) {
	if fault.From(nil, "r") != nil {
		t.Error("no error became a fault")
	}
	known := fault.New(fault.QueueFull)
	if got := fault.From(fmt.Errorf("send: %w", known), "r"); got != known {
		t.Errorf("got %v", got)
	}
	got := fault.From(errors.New("password=hunter2"), "ref-9")
	if got.Code != fault.Internal || strings.Contains(got.Public(), "hunter2") || !strings.Contains(got.Public(), "ref-9") {
		t.Errorf("got %q", got.Public())
	}
}

func constants(t *testing.T) []fault.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "catalogue.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var out []fault.Code
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			if name, ok := v.Type.(*ast.Ident); ok && name.Name == "Code" {
				out = append(out, fault.Code(strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`)))
			}
		}
		return true
	})
	return out
}
