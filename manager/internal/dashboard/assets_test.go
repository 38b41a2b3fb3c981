package dashboard

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gin-gonic/gin"
)

func TestNoAssetIsMissing(t *testing.T) {
	loaded := loadAssets()
	if len(loaded.missing) > 0 {
		t.Fatalf("%v are not embedded: run `make assets`", loaded.missing)
	}
	if got := readAssets(fstest.MapFS{"assets/style.css": {}}).missing; !slices.Equal(got, vendored) {
		t.Errorf("of an empty folder %v are missing", got)
	}
}

func TestAManagerWithoutAssetsSaysSo(t *testing.T) {
	d := &dashboard{assets: readAssets(fstest.MapFS{"assets/style.css": {}})}
	answer := httptest.NewRecorder()
	c, _ := gin.CreateTestContext(answer)
	c.Request = httptest.NewRequest("GET", "/agents", nil)
	d.show(c, 200, d.errorPage("title", "text"))
	if answer.Code != 503 || !strings.Contains(answer.Body.String(), "Run `make assets`") || strings.Contains(answer.Body.String(), "<html") {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
}

// Icons are named in pages and in tools/make-assets.
func TestEveryIconIsThere(t *testing.T) {
	pages, err := filepath.Glob("*.templ")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	var named []string
	for _, s := range sections {
		named = append(named, s.Icon)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`@icon\(p, "([^"]*)"\)`).FindAllSubmatch(text, -1) {
			named = append(named, string(found[1]))
		}
	}
	icons := loadAssets().icons
	for _, name := range named {
		if !slices.Contains(icons, name) {
			t.Errorf("there is no icon %q: name it in tools/make-assets", name)
		}
	}
}

// What every page needs stays below 100 kB.
func TestTheFirstPageIsLight(t *testing.T) {
	loaded, sum := loadAssets(), 0
	for _, name := range []string{"pico.min.css", "style.css", "htmx.min.js", "page.js", "live.js", sprite, "icon.svg"} {
		request := httptest.NewRequest("GET", "/"+name, nil)
		request.URL.Path = loaded.version + "/" + name
		request.Header.Set("Accept-Encoding", "deflate, gzip;q=1.0")
		answer := httptest.NewRecorder()
		loaded.ServeHTTP(answer, request)
		if answer.Code != 200 || answer.Header().Get("Content-Encoding") != "gzip" || !strings.Contains(answer.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %v", name, answer.Code, answer.Header())
		}
		sum += answer.Body.Len()
	}
	if sum > 50_000 {
		t.Errorf("%d bytes before there is any content", sum)
	}
	t.Logf("%d bytes", sum)
}

func TestWhoTakesGzip(t *testing.T) {
	for accepts, want := range map[string]bool{
		"": false, "gzip": true, "gzip, br": true, "br;q=1, gzip;q=0.5": true, "gzip;q=0": false, "gzip; q=0.0": false, "deflate": false,
	} {
		request := httptest.NewRequest("GET", "/", nil)
		request.Header.Set("Accept-Encoding", accepts)
		if got := takesGzip(request); got != want {
			t.Errorf("%q: %v", accepts, got)
		}
	}
}

func TestOnlyOurPagesFollowASignIn(t *testing.T) {
	for wanted, want := range map[string]string{
		"/sites/3?q=a": "/sites/3?q=a", "": "/agents", "https://example.com/": "/agents", "//example.com": "/agents", "/\\example.com": "/agents",
		"javascript:alert(1)": "/agents", "/%2f/x": "/%2f/x", "sites": "/agents", "/a\nb": "/agents",
	} {
		if got := next(wanted); got != want {
			t.Errorf("%q: %q", wanted, got)
		}
	}
}
