package terminal

import (
	"cmp"
	"strings"
)

// Language returns the language of the person at the terminal as the session protocol
// names it, by the variables that POSIX has for it: zh_CN or en_US. It is English where
// they name none that there are texts in.
func Language(getenv func(string) string) string {
	locale := cmp.Or(getenv("LC_ALL"), getenv("LC_MESSAGES"), getenv("LANG"))
	if strings.HasPrefix(strings.ToLower(locale), "zh") {
		return "zh_CN"
	}
	return "en_US"
}
