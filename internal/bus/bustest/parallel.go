package bustest

import "flag"

// Waiting lets eight tests of a package run at once, for packages whose tests wait for servers and timers more than
// they compute. Call it before the tests run; -parallel on the command line wins.
func Waiting() {
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
}
