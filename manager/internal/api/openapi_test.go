package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"opensource.internal/manager/servertest"
)

func TestDescriptionNamesOurErrorsAndTheCheckIn(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	answer := s.Call(t, "GET", "/openapi.json", nil)
	if got := answer.Header.Get("Content-Type"); got != "application/openapi+json" {
		t.Errorf("content type %q", got)
	}
	var spec struct {
		OpenAPI string
		Servers []struct{ URL string }
		Paths   map[string]map[string]struct {
			OperationID string
			Security    *[]map[string][]string
		}
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if err := json.Unmarshal(answer.Body, &spec); err != nil {
		t.Fatal(err)
	}
	if spec.OpenAPI != "3.1.0" || len(spec.Servers) != 1 || spec.Servers[0].URL != "/api/v1" {
		t.Errorf("%s, servers %v", spec.OpenAPI, spec.Servers)
	}
	if spec.Paths["/agents"]["post"].OperationID == "" {
		t.Error("the check-in is not described")
	}
	for name, want := range map[string]string{
		"ErrorBody": `"error"`, "SiteCreate": `"required":["name"]`, "SitePatch": `"additionalProperties":false`,
		"CheckInRequest": `"additionalProperties":true`, "CheckInSite": `"dnsRecords"`, "Site": `"portRange"`,
	} {
		if !strings.Contains(string(spec.Components.Schemas[name]), want) {
			t.Errorf("schema %s has no %s: %s", name, want, spec.Components.Schemas[name])
		}
	}
	for _, absent := range []string{"ErrorModel", "problem+json", "$schema"} {
		if strings.Contains(string(answer.Body), absent) {
			t.Errorf("%s is in the description", absent)
		}
	}
	ids := map[string]bool{}
	for path, methods := range spec.Paths {
		for method, operation := range methods {
			if operation.OperationID == "" || ids[operation.OperationID] {
				t.Errorf("%s %s: operation id %q", method, path, operation.OperationID)
			}
			ids[operation.OperationID] = true
			open := strings.HasPrefix(path, "/health") || path == "/enroll" || path == "/session" && method == "post"
			if described := operation.Security != nil && len(*operation.Security) == 0; described != open {
				t.Errorf("%s %s: needs no credentials: %v, described: %v", method, path, open, described)
			}
		}
	}
}
