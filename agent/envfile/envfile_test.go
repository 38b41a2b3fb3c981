package envfile

import (
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for _, test := range []struct {
		name, content string
		want          map[string]string
	}{
		{"plain", "A=1\nB=two words\n", map[string]string{"A": "1", "B": "two words"}},
		{"no line end at the end", "A=1", map[string]string{"A": "1"}},
		{"comments and junk", "# A=1\n;B=2\n\nC=3\njunk\n  D=4\n", map[string]string{"C": "3", "D": "4"}},
		{"blanks around", " A = 1 \t\n", map[string]string{"A": "1"}},
		{"empty", "A=\nB=''\n", map[string]string{"A": "", "B": ""}},
		{"hash is no comment inside", "A=a#b #c\n", map[string]string{"A": "a#b #c"}},
		{"single quotes", `A='a"b\$c d '` + "\n", map[string]string{"A": `a"b\$c d `}},
		{"double quotes", `A="a\"b\\c\$d\n e"` + "\n", map[string]string{"A": `a"b\c$d\n e`}},
		{"dollar is not expanded", "A=$HOME${X}\n", map[string]string{"A": "$HOME${X}"}},
		{"quotes inside a value stay", "A=a\"b'c\n", map[string]string{"A": "a\"b'c"}},
		{"parts are joined", `A="a" 'b'c` + "\n", map[string]string{"A": "abc"}},
		{"escape outside quotes", `A=a\"b\\c\ d` + "\n", map[string]string{"A": `a"b\c d`}},
		{"continued", "A=a\\\nb\nB=\"c\\\nd\"\n", map[string]string{"A": "ab", "B": "cd"}},
		{"quoted line end stays", "A='a\nb'\n", map[string]string{"A": "a\nb"}},
		{"equals sign in the value", "A=b=c\n", map[string]string{"A": "b=c"}},
		{"later wins", "A=1\nA=2\n", map[string]string{"A": "2"}},
		{"carriage returns", "A=1\r\nB=2\r\n", map[string]string{"A": "1", "B": "2"}},
		{"unfinished", `A="b\`, map[string]string{"A": "b"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Parse(test.content)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("A=1\n#x\nB=\"\\\n'")
	f.Fuzz(func(_ *testing.T, content string) { Parse(content) })
}

func TestReadBySystemd(t *testing.T) {
	for value, want := range map[string]bool{"": false, "1": false, strconv.Itoa(os.Getpid()): true} {
		if got := ReadBySystemd(map[string]string{"SYSTEMD_EXEC_PID": value}); got != want {
			t.Errorf("SYSTEMD_EXEC_PID=%q: %v", value, got)
		}
	}
}
