package edge

import (
	"crypto/sha256"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// A session gets its id before it exists, and nothing is stored of it until then. So the id
// says what any gateway has to know of a session that is not opened: when it was named, in
// which tenant and by whom, and the preferences that change what runs do. It is a UUID of
// version 7, whose last bytes are two checksums, and the preferences:
//
//	0199e3a0-7b44-7c1d-9a52-5d0f3a9b61c4-pyezh_CN
const (
	// nameLife is how long a session may be opened under its id.
	nameLife = 24 * time.Hour
	// nameSkew is how far the clocks of two gateways may be apart: the id of one that is ahead lies in the future of the other.
	nameSkew = time.Hour
	// sumBytes is the size of each checksum: one of the tenant and one of the principal end the
	// UUID. Everybody may know them: they tell ids of others, or that no gateway gave, from one that
	// a client comes back with.
	sumBytes = 2
	sumStart = len(uuid.UUID{}) - 2*sumBytes

	uuidLen     = 36
	markWishes  = "-p"
	unset       = 'x'
	maxLanguage = 32
)

// letters of the preferences confirm_plan and on_busy.
var (
	confirmLetters = map[byte]*bool{'y': new(true), 'n': new(false)}
	busyLetters    = map[byte]string{'r': event.OnBusyReject, 'e': event.OnBusyEnqueue, 'i': event.OnBusyInterrupt}
)

// NameSession returns the id of a session of the principal that does not exist.
func NameSession(owner auth.Principal, p event.Preferences) (id.Entity, error) {
	u, err := uuid.NewV7()
	if err != nil {
		return id.Entity{}, err
	}
	wishes := encodeWishes(p)
	ofTenant, ofOwner := nameSums(owner, u, wishes)
	copy(u[sumStart:], ofTenant+ofOwner)
	return id.ParseEntity(u.String() + wishes)
}

// Awaited returns the session that a log without events is of, if it may still be opened under its
// id and the principal may see it then. Only the principal that named it opens it: it becomes the
// owner.
func (e *Edge) Awaited(p auth.Principal, log subject.Log) (u *Unopened, ok bool) {
	name := log.Entity.String()
	if log.Kind != id.KindSession || len(name) < uuidLen || !p.Owns(log) {
		return nil, false
	}
	parsed, err := uuid.Parse(name[:uuidLen])
	at, stamped := id.Stamp(name)
	if age := e.Clock().Sub(at); err != nil || !stamped || age > nameLife || age < -nameSkew {
		return nil, false
	}
	wishes := name[uuidLen:]
	ofTenant, ofOwner := nameSums(p, parsed, wishes)
	sums := string(parsed[sumStart:])
	own := sums == ofTenant+ofOwner
	if !own && (sums[:sumBytes] != ofTenant || !e.Sight.SeesAll(p)) {
		return nil, false
	}
	u = NewUnopened(log, decodeWishes(wishes))
	u.foreign = !own
	return u, true
}

// nameSums returns the checksums of a name.
func nameSums(owner auth.Principal, u uuid.UUID, wishes string) (ofTenant, ofOwner string) {
	sum := func(of string) string {
		all := sha256.Sum256([]byte(of + "\x00" + string(u[:sumStart]) + wishes))
		return string(all[:sumBytes])
	}
	tenant := owner.Tenant.String()
	return sum(tenant), sum(tenant + "\x00" + owner.Subject)
}

// encodeWishes returns the preferences that a gateway cannot do without, empty for none.
func encodeWishes(p event.Preferences) string {
	confirm, busy := byte(unset), byte(unset)
	for letter, v := range confirmLetters {
		if p.ConfirmPlan != nil && *v == *p.ConfirmPlan {
			confirm = letter
		}
	}
	for letter, v := range busyLetters {
		if v == p.OnBusy {
			busy = letter
		}
	}
	language := strings.ReplaceAll(p.Language, "-", "_")
	if _, err := id.ParseName(language); err != nil || len(language) > maxLanguage {
		language = ""
	}
	if confirm == unset && busy == unset && language == "" {
		return ""
	}
	return markWishes + string([]byte{confirm, busy}) + language
}

func decodeWishes(s string) (p event.Preferences) {
	s, ok := strings.CutPrefix(s, markWishes)
	if !ok || len(s) < 2 {
		return p
	}
	p.ConfirmPlan, p.OnBusy, p.Language = confirmLetters[s[0]], busyLetters[s[1]], s[2:]
	return p
}
