package embedded

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/rs/zerolog"
)

// serverLog forwards log messages of the embedded server. It lowers the server's notices to level debug, because they
// only help to find a fault in the server itself.
type serverLog struct {
	to     zerolog.Logger
	fatal  chan string         // first message after which the server cannot continue
	failed func(stream string) // a stream takes no more messages; without a name: none does
}

func (l *serverLog) say(level zerolog.Level, format string, v ...any) {
	l.to.WithLevel(level).Msgf("nats-server: "+format, v...)
}

// Noticef implements server.Logger.
func (l *serverLog) Noticef(format string, v ...any) { l.say(zerolog.DebugLevel, format, v...) }

// Debugf implements server.Logger.
func (l *serverLog) Debugf(format string, v ...any) { l.say(zerolog.TraceLevel, format, v...) }

// Tracef implements server.Logger.
func (l *serverLog) Tracef(format string, v ...any) { l.say(zerolog.TraceLevel, format, v...) }

// Warnf implements server.Logger.
func (l *serverLog) Warnf(format string, v ...any) { l.say(zerolog.WarnLevel, format, v...) }

// Errorf implements server.Logger. The server tells of a failed write nowhere else: without a cluster, its health leaves out
// streams that it does not acknowledge.
func (l *serverLog) Errorf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.say(zerolog.ErrorLevel, "%s", text)
	if m := deadStream.FindStringSubmatch(text); m != nil {
		l.failed(m[1] + m[2])
	}
	if strings.Contains(text, "will be DISABLED") {
		l.failed("")
	}
}

// deadStream matches the two messages after which a stream takes no more messages.
var deadStream = regexp.MustCompile(`^(?:Filestore \[([^\]]+)\] Critical|JetStream stream '[^']* > ([^']+)' critical) write error`)

// Fatalf implements server.Logger. It does not end the process: the caller of Start decides.
func (l *serverLog) Fatalf(format string, v ...any) {
	l.say(zerolog.ErrorLevel, format, v...)
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default:
	}
}
