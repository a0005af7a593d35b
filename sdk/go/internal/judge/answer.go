package judge

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/sdk"
)

// answer writes an answer byte by byte, as no library would.
type answer struct {
	play *play
	of   sdk.Exchange
	conn net.Conn
	log  string // KIND.ID, of a stream

	zip *gzip.Writer
	raw bytes.Buffer // the output of zip
}

// Values of Exchange.End.
const (
	endCut  = "cut"
	endDone = "done"
)

func (a *answer) write(ctx context.Context) error {
	if a.of.Frames != nil || a.of.End != "" {
		return a.stream(ctx)
	}
	body, media := a.body()
	if a.of.Gzip {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write(body); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		body = b.Bytes()
	}
	head := a.head(media)
	if status := a.status(); status != http.StatusNoContent {
		head += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	if a.of.Cut {
		body = body[:len(body)-1]
	}
	_, err := a.conn.Write(append([]byte(head+"\r\n"), body...))
	return err
}

// body returns the body and its media type.
func (a *answer) body() (body []byte, media string) {
	switch x := a.of; {
	case x.Problem != "":
		return document(x.Problem, a.status(), x.Field), "application/problem+json"
	case x.JSON != nil:
		return x.JSON, "application/json"
	case x.Size > 0:
		return pattern(x.Size), "application/octet-stream"
	default:
		return []byte(x.Text), "text/html; charset=utf-8"
	}
}

// pattern returns n bytes of no text.
func pattern(n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(i * 7)
	}
	return out
}

func (a *answer) status() int {
	if a.of.Status != 0 || a.of.Problem == "" {
		return cmp.Or(a.of.Status, http.StatusOK)
	}
	return cmp.Or(fault.Lookup(fault.Code(a.of.Problem)).Status, http.StatusOK)
}

// head returns the status line and the headers.
func (a *answer) head(media string) string {
	lines := map[string]string{"Content-Type": media, "Connection": "close"}
	if a.of.Gzip {
		lines["Content-Encoding"] = "gzip"
	}
	if text := a.of.RetryAfter; text != "" {
		var seconds int
		if _, err := fmt.Sscanf(text, "in %d", &seconds); err == nil {
			text = time.Now().Add(time.Duration(seconds) * time.Second).UTC().Format(http.TimeFormat)
		}
		lines["Retry-After"] = text
	}
	for name, value := range a.of.Header {
		lines[name] = value
	}
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", a.status(), cmp.Or(http.StatusText(a.status()), "Status"))
	for name, value := range lines {
		fmt.Fprintf(&b, "%s: %s\r\n", name, value)
	}
	return b.String()
}

// stream writes the frames of a stream.
func (a *answer) stream(ctx context.Context) error {
	if _, err := io.WriteString(a.conn, a.head("text/event-stream")+"Transfer-Encoding: chunked\r\n\r\n"); err != nil {
		return err
	}
	if a.of.Gzip {
		a.zip = gzip.NewWriter(&a.raw)
	}
	if a.of.BOM {
		if err := a.put([]byte("\uFEFF")); err != nil {
			return err
		}
	}
	for _, f := range a.of.Frames {
		if err := a.play.hold(ctx, f.Hold); err != nil {
			return err
		}
		text := []byte(a.frame(f))
		if f.Cut != 0 {
			return a.put(cut(text, f.Cut))
		}
		if err := a.put(text); err != nil {
			return err
		}
	}
	switch a.of.End {
	case endCut:
		return nil
	case endDone:
		if err := a.finish(); err != nil {
			return err
		}
		_, err := io.WriteString(a.conn, "0\r\n\r\n")
		return err
	}
	select {
	case <-ctx.Done():
	case <-a.play.over:
	}
	return nil
}

// cut returns the beginning of a frame: n bytes, or for -1 up to within its first character of several bytes.
func cut(text []byte, n int) []byte {
	if n > 0 {
		return text[:min(n, len(text))]
	}
	for i, b := range text {
		if b > 0x7f {
			return text[:i+1]
		}
	}
	return text
}

// put writes a part of the body in packets.
func (a *answer) put(text []byte) error {
	if a.zip != nil {
		if _, err := a.zip.Write(text); err != nil {
			return err
		}
		if err := a.zip.Flush(); err != nil {
			return err
		}
		text = bytes.Clone(a.raw.Bytes())
		a.raw.Reset()
	}
	size := a.of.Chunk
	if size == 0 {
		size = max(len(text), 1)
	}
	for len(text) > 0 {
		n := min(size, len(text))
		packet := append(fmt.Appendf(nil, "%x\r\n", n), text[:n]...)
		if _, err := a.conn.Write(append(packet, "\r\n"...)); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

func (a *answer) finish() error {
	if a.zip == nil {
		return nil
	}
	if err := a.zip.Close(); err != nil {
		return err
	}
	a.zip = nil
	text := bytes.Clone(a.raw.Bytes())
	a.raw.Reset()
	return a.put(text)
}

// frame returns the text of a frame.
func (a *answer) frame(f sdk.Frame) string {
	if f.Raw != "" {
		return f.Raw
	}
	lines := []string{}
	switch {
	case f.Comment != "":
		lines = append(lines, ": "+f.Comment)
	case f.Problem != nil:
		lines = append(lines, "event: problem", "data: "+compact(f.Problem))
	case f.Gap > 0:
		lines = append(lines, "event: gap", "data: "+compact(map[string]any{"dropped": f.Gap}))
	default:
		if !f.Live {
			lines = append(lines, fmt.Sprint("id: ", f.Seq))
		}
		kind := cmp.Or(f.Type, "message.delta")
		lines = append(lines, "event: "+cmp.Or(f.Name, kind), "data: "+a.event(f, kind))
	}
	end := cmp.Or(a.of.Line, "\n")
	return strings.Join(lines, end) + end + end
}

// event returns an event of the log.
func (a *answer) event(f sdk.Frame, kind string) string {
	data := f.Data
	if data == nil {
		text := fmt.Sprintf("Wörter %d ", f.Seq)
		if f.Size > 0 {
			text = strings.Repeat("ä", f.Size/2)
		}
		data = map[string]any{"run_id": "r1", "message_id": "a1", "text": text}
	}
	e := map[string]any{
		"specversion": "1.0", "id": fmt.Sprint("e", f.Seq), "source": "case", "type": kind, "subject": "default." + a.log,
		"time": "2026-01-02T03:04:05Z", "sequence": f.Seq, "data": data,
	}
	if f.From > 0 {
		e["from"] = f.From
	}
	return compact(e)
}

func compact(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error() // unreachable: what was read from JSON has a JSON form
	}
	return strings.TrimSpace(b.String())
}
