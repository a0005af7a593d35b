package terminal

import (
	"cmp"
	"strings"
)

// Language returns the language of the terminal's user, by POSIX' variables, with the session protocol's names: zh_CN or
// en_US. It returns English for languages without texts.
func Language(getenv func(string) string) string {
	locale := cmp.Or(getenv("LC_ALL"), getenv("LC_MESSAGES"), getenv("LANG"))
	if strings.HasPrefix(strings.ToLower(locale), "zh") {
		return "zh_CN"
	}
	return "en_US"
}
