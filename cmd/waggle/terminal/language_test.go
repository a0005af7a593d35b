package terminal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
)

func TestLanguage(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{nil, "en_US"},
		{map[string]string{"LANG": "C.UTF-8"}, "en_US"},
		{map[string]string{"LANG": "de_DE.UTF-8"}, "en_US"},
		{map[string]string{"LANG": "zh_CN.UTF-8"}, "zh_CN"},
		{map[string]string{"LANG": "zh_CN.UTF-8", "LC_ALL": "en_GB"}, "en_US"},
		{map[string]string{"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_TW"}, "zh_CN"},
	} {
		require.Equal(t, c.want, terminal.Language(func(name string) string { return c.env[name] }), "%v", c.env)
	}
}
