package service_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// script is a tool server that answers with texts as they are: servers of other makers send what the SDK cannot.
type script struct {
	Pages  []string `json:"pages"`            // results of tools/list; the cursor is the number of the page
	Result string   `json:"result"`           // of tools/call; empty: the program ends
	Refuse string   `json:"refuse,omitempty"` // the message of an error in place of initialize
}

func init() {
	moreModes["script"] = func() {
		var s script
		if json.Unmarshal([]byte(os.Getenv("SCRIPT")), &s) != nil {
			os.Exit(1)
		}
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			if answer := s.answer(in.Bytes()); answer != "" {
				fmt.Fprintln(os.Stdout, answer)
			}
		}
	}
}

// String returns the script for the environment of a program.
func (s script) String() string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// answer returns the answer to a message; empty if it wants none.
func (s script) answer(message []byte) string {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Cursor  string `json:"cursor"`
			Version string `json:"protocolVersion"`
		} `json:"params"`
	}
	if json.Unmarshal(message, &m) != nil || m.ID == nil {
		return ""
	}
	result := "{}"
	switch m.Method {
	case "initialize":
		if s.Refuse != "" {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":%q}}`, m.ID, s.Refuse)
		}
		result = fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}`, m.Params.Version)
	case "tools/list":
		n, _ := strconv.Atoi(m.Params.Cursor)
		result = s.Pages[min(n, len(s.Pages)-1)]
	case "tools/call":
		if result = s.Result; result == "" {
			fmt.Fprintln(os.Stderr, "panic: no result")
			os.Exit(7)
		}
	case "ping":
	default:
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// ServeHTTP answers as a streamable HTTP endpoint, with events if the path says so.
func (s script) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	message, _ := io.ReadAll(req.Body)
	answer := s.answer(message)
	switch {
	case answer == "":
		w.WriteHeader(http.StatusAccepted)
	case strings.HasSuffix(req.URL.Path, "/events"):
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, ": hello\n\nevent: message\ndata: %s\n\n", answer)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}
}
