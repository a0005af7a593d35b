package embedded

import (
	"fmt"

	"github.com/rs/zerolog"
)

// serverLog forwards log messages of the embedded server. It lowers the server's notices to level debug, because they
// only help to find a fault in the server itself.
type serverLog struct {
	to    zerolog.Logger
	fatal chan string // first message after which the server cannot continue
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

// Errorf implements server.Logger.
func (l *serverLog) Errorf(format string, v ...any) { l.say(zerolog.ErrorLevel, format, v...) }

// Fatalf implements server.Logger. It does not end the process: the caller of Start decides.
func (l *serverLog) Fatalf(format string, v ...any) {
	l.say(zerolog.ErrorLevel, format, v...)
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default:
	}
}
