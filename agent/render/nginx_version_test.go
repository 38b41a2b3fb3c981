package render

import (
	"strings"
	"testing"

	"opensource.internal/agent/checkin"
)

func TestUnknownNGINXRendersNothing(t *testing.T) {
	r, err := NGINX(checkin.Bootstrap(), Facts{}, LoadTemplates(nil))
	if err == nil || !strings.Contains(err.Error(), "version of nginx") || len(r.Files) > 0 {
		t.Errorf("got %+v, %v", r, err)
	}
}
