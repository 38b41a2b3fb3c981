package dashboard

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
)

//go:embed assets
var embedded embed.FS

// assets are the style sheet, the script and the icon. Their addresses carry a
// version made from their content, so browsers may keep them for good.
type assets struct {
	files   map[string][]byte
	version string
}

var assetTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

func loadAssets() assets {
	loaded := assets{files: map[string][]byte{}}
	sum := sha256.New()
	entries, _ := fs.ReadDir(embedded, "assets") // embedded: cannot fail
	for _, entry := range entries {
		content, _ := fs.ReadFile(embedded, path.Join("assets", entry.Name()))
		loaded.files[entry.Name()] = content
		sum.Write(content)
	}
	loaded.version = hex.EncodeToString(sum.Sum(nil))[:12]
	return loaded
}

// ServeHTTP answers one file.
func (a assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, ok := a.files[r.URL.Path]
	if !ok {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", assetTypes[path.Ext(r.URL.Path)])
	if r.URL.Query().Get("v") == a.version {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		w.Header().Set("Cache-Control", "no-cache")
	}
	_, _ = w.Write(content) // the client is gone if this fails
}
