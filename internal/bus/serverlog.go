package bus

import (
	"fmt"

	"github.com/rs/zerolog"
)

// serverLog passes on what the embedded server has to say. Its notices interest
// only those who look for a fault in the server itself.
type serverLog struct {
	to    zerolog.Logger
	fatal chan string // the first message after which the server cannot go on
}

func (l *serverLog) Noticef(format string, v ...any) { l.to.Debug().Msgf("nats-server: "+format, v...) }
func (l *serverLog) Debugf(format string, v ...any)  { l.to.Trace().Msgf("nats-server: "+format, v...) }
func (l *serverLog) Tracef(format string, v ...any)  { l.to.Trace().Msgf("nats-server: "+format, v...) }
func (l *serverLog) Warnf(format string, v ...any)   { l.to.Warn().Msgf("nats-server: "+format, v...) }
func (l *serverLog) Errorf(format string, v ...any)  { l.to.Error().Msgf("nats-server: "+format, v...) }

// Fatalf does not end the process: whoever started the server decides.
func (l *serverLog) Fatalf(format string, v ...any) {
	l.to.Error().Msgf("nats-server: "+format, v...)
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default:
	}
}
