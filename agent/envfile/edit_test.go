package envfile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEditKeepsEverythingElse(t *testing.T) {
	settings := []Assignment{{"SITE_ID", "7"}, {"MANAGER_URL", "https://m.example.com"}, {"API_KEY", ""}}
	const added = "\n# note\nSITE_ID=7\nMANAGER_URL=https://m.example.com\n"
	for name, test := range map[string]struct{ content, want string }{
		"empty":                   {"", added[1:]},
		"only notes":              {"# Settings\n#SITE_ID=1\n; API_KEY=x\n", "# Settings\n#SITE_ID=1\n; API_KEY=x\n" + added},
		"no line feed at the end": {"LOG_LEVEL=debug", "LOG_LEVEL=debug\n" + added},
		"in their place": {
			"# a\nSITE_ID=1\n\n  MANAGER_URL = 'http://old' \nLOG_LEVEL=debug # no comment\nAPI_KEY=secret\n# z\n",
			"# a\nSITE_ID=7\n\n  MANAGER_URL=https://m.example.com\nLOG_LEVEL=debug # no comment\n# z\n",
		},
		"twice":      {"SITE_ID=1\nSITE_ID=2\nMANAGER_URL=x\n", "SITE_ID=7\nMANAGER_URL=https://m.example.com\n"},
		"continued":  {"API_KEY=a\\\nb\nMANAGER_URL=\"x\ny\"\nSITE_ID=1\n", "MANAGER_URL=https://m.example.com\nSITE_ID=7\n"},
		"odd values": {"X=\"SITE_ID=1\n\"\nSITE_ID=1\nMANAGER_URL=1\nnothing\n", "X=\"SITE_ID=1\n\"\nSITE_ID=7\nMANAGER_URL=https://m.example.com\nnothing\n"},
	} {
		got, err := Edit(test.content, "note", settings...)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if again, err := Edit(got, "note", settings...); again != got || err != nil {
			t.Errorf("%s: editing again gives %q, %v", name, again, err)
		}
	}
}

func TestEditRefusesAnOpenEnd(t *testing.T) {
	for _, content := range []string{"X=\"a\nb", "X='a", "X=a\\"} {
		if got, err := Edit(content, "note", Assignment{"SITE_ID", "1"}); err == nil {
			t.Errorf("%q became %q", content, got)
		}
	}
	if got, err := Edit("SITE_ID=2\nX='a", "note", Assignment{"SITE_ID", "1"}); err != nil || got != "SITE_ID=1\nX='a" {
		t.Errorf("%q, %v", got, err)
	}
}

func FuzzEdit(f *testing.F) {
	f.Add("SITE_ID=1\n# x\nX='a\nb'\n", "http://a/'b$c\"d\\e#f g")
	f.Add("X=a\\", "x")
	f.Fuzz(func(t *testing.T, content, value string) {
		if value == "" {
			return
		}
		for _, c := range []byte(value) {
			if c <= ' ' || c >= 0x7f {
				return // no setting of ours has these
			}
		}
		before := Parse(content)
		edited, err := Edit(content, "note", Assignment{"SITE_ID", value}, Assignment{"API_KEY", ""})
		if err != nil {
			return
		}
		after := Parse(edited)
		if _, kept := after["API_KEY"]; kept || after["SITE_ID"] != value {
			t.Fatalf("%q became %q", content, after)
		}
		for _, ours := range []string{"API_KEY", "SITE_ID"} {
			delete(before, ours)
			delete(after, ours)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("%q: other settings have changed:\n%s", content, diff)
		}
	})
}
