package events

import "testing"

// A summary has the line that says what is wrong.
func TestFirstLine(t *testing.T) {
	for message, want := range map[string]string{
		"":           "",
		"one":        "one",
		" one \ntwo": "one",
		"nginx: [warn] protocol options redefined\nnginx: [emerg] bad in x:3\nnginx: test failed": "nginx: [emerg] bad in x:3",
		"[cut] ned in old.conf:3\nnginx: [warn] w\nnginx: [emerg] bad":                            "nginx: [emerg] bad",
		"nginx: [warn] only that":    "nginx: [warn] only that",
		"[cut] of which is all left": "[cut] of which is all left",
	} {
		if got := firstLine(message); got != want {
			t.Errorf("%q begins with %q, want %q", message, got, want)
		}
	}
}
