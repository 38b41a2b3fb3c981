package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOIDC(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("hush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"PUBLIC_URL": "https://manager.example.com", "OIDC_ISSUER": "https://accounts.example.com/realms/x", "OIDC_CLIENT_ID": "manager",
		"OIDC_CLIENT_SECRET_FILE": file, "OIDC_ADMIN_GROUPS": "net admins, ops,", "OIDC_VIEWERS": "eve@example.com",
	}
	c, settings, err := Explain(Flags{}, env)
	if err != nil {
		t.Fatal(err)
	}
	want := &OIDC{
		Issuer: "https://accounts.example.com/realms/x", ClientID: "manager", ClientSecret: "hush", Scopes: []string{"openid", "profile", "email"},
		Name: "single sign-on", RoleClaim: "groups", AdminGroups: []string{"net admins", "ops"}, Viewers: []string{"eve@example.com"},
	}
	if diff := cmp.Diff(want, c.OIDC); diff != "" {
		t.Error(diff)
	}
	for _, setting := range settings {
		if strings.Contains(setting.Value, "hush") {
			t.Errorf("the secret is shown: %+v", setting)
		}
	}
	if c, err := Load(Flags{}, map[string]string{"PUBLIC_URL": "https://a.example"}); err != nil || c.OIDC != nil {
		t.Errorf("%+v, %v", c.OIDC, err)
	}
	credentials := map[string]string{"CREDENTIALS_DIRECTORY": filepath.Dir(file)}
	for name, value := range env {
		if name != "OIDC_CLIENT_SECRET_FILE" {
			credentials[name] = value
		}
	}
	if c, err := Load(Flags{}, credentials); err != nil || c.OIDC.ClientSecret != "" {
		t.Errorf("no such credential: %v", err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "oidc-client-secret"), []byte("credential"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := Load(Flags{}, credentials); err != nil || c.OIDC.ClientSecret != "credential" {
		t.Errorf("%v", err)
	}
}

func TestMistakesOfOIDC(t *testing.T) {
	_, err := Load(Flags{}, map[string]string{"OIDC_SCOPES": "email", "OIDC_CLIENT_SECRET_FILE": "/nonexistent"})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, name := range []string{"OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_SCOPES", "OIDC_CLIENT_SECRET_FILE", "OIDC_ADMIN_GROUPS", "PUBLIC_URL"} {
		if !strings.Contains(err.Error(), name+": ") {
			t.Errorf("%s is not named in:\n%v", name, err)
		}
	}
	for _, issuer := range []string{"accounts.example.com", "http://accounts.example.com", "https://a?b", "https://", "ftp://a"} {
		env := map[string]string{"PUBLIC_URL": "https://a", "OIDC_ISSUER": issuer, "OIDC_CLIENT_ID": "x", "OIDC_ADMINS": "a@example.com"}
		if _, err := Load(Flags{}, env); err == nil || !strings.Contains(err.Error(), "OIDC_ISSUER: ") {
			t.Errorf("%s: %v", issuer, err)
		}
	}
}
