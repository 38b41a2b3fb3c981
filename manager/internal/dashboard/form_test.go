package dashboard

import (
	"net/http"
	"net/url"
	"testing"
)

func TestFieldsReadWhatIsTyped(t *testing.T) {
	port, yes, id := 0, false, new(int64)
	f := &form{Fields: []*field{number("port", "Port", &port), check("yes", "Yes", &yes), record("nodeId", "Node", &id)}}
	if err := f.read(url.Values{"port": {"8080"}, "yes": {"on"}, "nodeId": {"7"}}); err != nil || port != 8080 || !yes || *id != 7 {
		t.Errorf("%v: %d %v %v", err, port, yes, id)
	}
	if err := f.read(url.Values{}); err != nil || port != 0 || yes || id != nil {
		t.Errorf("empty: %v: %d %v %v", err, port, yes, id)
	}
	for _, wrong := range []string{"x", "1.5", "99999999999999999999", "0x10"} {
		err := f.read(url.Values{"port": {wrong}, "nodeId": {wrong}})
		if status := f.refused(err); status != http.StatusUnprocessableEntity || f.Fields[0].Fault == "" || f.Fields[0].Value != wrong || f.Fields[2].Fault == "" {
			t.Errorf("%s: %d %v", wrong, status, err)
		}
	}
}
