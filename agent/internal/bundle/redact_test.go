package bundle

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRedaction(t *testing.T) {
	r := NewRedactor("s3cr&t key\"x", "proxy-pass", "short")
	for text, want := range map[string]string{
		"": "", "nothing to hide": "nothing to hide",
		"key osk_0123456789abcdef_" + strings.Repeat("0f", 32) + ".": "key [removed].",
		"cut: osk_0123":                           "cut: [removed]",
		`it is s3cr&t key"x`:                      "it is [removed]",
		`quoted "s3cr&t key\"x"`:                  `quoted "[removed]"`,
		"in an address ?x=s3cr%26t+key%22x":       "in an address ?x=[removed]",
		"short words stay":                        "short words stay",
		"Authorization: Bearer abc":               "Authorization: [removed]",
		"> authorization: abc def\nnext":          "> authorization: [removed]\nnext",
		"Proxy-Authorization=Basic dXNlcjpwYXNz":  "Proxy-Authorization=[removed]",
		"sent bearer abcdef123456 to it":          "sent bearer [removed] to it",
		"Basic dXNlcjpwYXNz, and so on":           "Basic [removed], and so on",
		"use basic authentication":                "use basic authentication",
		"Cookie: a=\"b\"; c=d\r\nHost: x":         "Cookie: [removed]\r\nHost: x",
		"set-cookie: sid=1; Path=/":               "set-cookie: [removed]",
		"x-api-key: 12345":                        "x-api-key: [removed]",
		"_oauth2_proxy_0=abc; x":                  "_oauth2_proxy_0=[removed]; x",
		"http://user:pw@proxy:3128/":              "http://[removed]@proxy:3128/",
		"see https://host/path@x and a@b.example": "see https://host/path@x and a@b.example",
		"postgres://u@db/x":                       "postgres://[removed]@db/x",
		"DB_PASSWORD=hunter2":                     "DB_PASSWORD=[removed]",
		"password: 'hunter two', next":            "password: [removed], next",
		"API_KEY=abc API_KEY_FILE=/etc/key":       "API_KEY=[removed] API_KEY_FILE=/etc/key",
		"GET /cb?code=abc&state=def HTTP/1.1":     "GET /cb?code=[removed]&state=[removed] HTTP/1.1",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.c2ln":  "[removed]",
		"a\n-----BEGIN EC PRIVATE KEY-----\nx\n-----END EC PRIVATE KEY-----\nb": "a\n[private key removed]\nb",
		"-----BEGIN PRIVATE KEY-----\ncut":                                      "[private key removed]",
		"-----BEGIN CERTIFICATE-----\nx":                                        "-----BEGIN CERTIFICATE-----\nx",
		`proxy_set_header Authorization "Basic dXNlcjpwYXNz";`:                  `proxy_set_header Authorization [removed];`,
		`proxy_set_header X-Api-Key 12345;`:                                     `proxy_set_header X-Api-Key [removed];`,
		`proxy_set_header Authorization $http_authorization;`:                   `proxy_set_header Authorization $http_authorization;`,
		`proxy_set_header Cookie "$http_cookie";`:                               `proxy_set_header Cookie "$http_cookie";`,
		`proxy_set_header X-Access-Token "";`:                                   `proxy_set_header X-Access-Token "";`,
		`add_header Set-Cookie "a=b; Secure";`:                                  `add_header Set-Cookie [removed]; Secure";`,
	} {
		got := string(r.Text([]byte(text)))
		if got != want {
			t.Errorf("%q became\n%q, want\n%q", text, got, want)
		}
		if again := string(r.Text([]byte(got))); again != got {
			t.Errorf("%q, redacted again, became %q", got, again)
		}
	}
}

func TestRedactionOfJSON(t *testing.T) {
	r := NewRedactor("the-hidden")
	for text, want := range map[string]string{
		`{"a": "x\u00e9 <b>", "n": 1.50, "list": [ null ]}`:       `{"a": "x\u00e9 <b>", "n": 1.50, "list": [ null ]}`,
		`{"a":"Cookie: a=\"b\"; c","n":1.50}`:                     `{"a":"Cookie: [removed]","n":1.50}`,
		`{"url":"http:\/\/user:pw@host\/<x>"}`:                    `{"url":"http://[removed]@host/<x>"}`,
		`{"password":"hunter \"2\"","apiKey" : "x","token":null}`: `{"password":"[removed]","apiKey" : "[removed]","token":null}`,
		`{"the-hidden":"\u0074he-hidden\n"}`:                      `{"[removed]":"[removed]\n"}`,
		`{"cut": "the-hidden`:                                     `{"cut": "[removed]`,
	} {
		got := string(r.JSON([]byte(text)))
		if got != want {
			t.Errorf("%s became\n%s, want\n%s", text, got, want)
		}
		if json.Valid([]byte(text)) && !json.Valid([]byte(got)) {
			t.Errorf("%s became %s, which is no JSON", text, got)
		}
	}
}

// What the agent itself writes has no secret in it, and must be in an archive to
// the byte.
func TestRenderedFilesAndTemplatesAreLeftAsTheyAre(t *testing.T) {
	r := NewRedactor()
	count := 0
	for _, pattern := range []string{"../../render/testdata/golden/*", "../../../templates/*/*.tmpl", "../../checkin/testdata/*.json"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				continue // a folder
			}
			count++
			if got := r.File(file, content); string(got) != string(content) {
				t.Errorf("%s is changed", file)
			}
		}
	}
	if count < 30 {
		t.Errorf("only %d files were looked at", count)
	}
}

func FuzzRedactionKeepsJSON(f *testing.F) {
	f.Add(`{"a":"Cookie: a=\"b\"; c","password":"x\\"}`)
	r := NewRedactor("the-hidden")
	f.Fuzz(func(t *testing.T, text string) {
		if got := r.JSON([]byte(text)); json.Valid([]byte(text)) && !json.Valid(got) {
			t.Errorf("%s became %s", text, got)
		}
	})
}
