package dashboard

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
)

//go:embed assets
var embedded embed.FS

// vendored are the files of others, which `make assets` puts into the folder.
var vendored = []string{"pico.min.css", "htmx.min.js", "uPlot.iife.min.js", "uPlot.min.css", "icons/copy.svg"}

// sprite holds every icon as a symbol of its name.
const sprite = "icons.svg"

// assets are the style sheets, scripts and icons. Their addresses carry a
// version made from the content of all of them, as a folder: so browsers may keep
// them for good, and what a style sheet names beside it is of the same version.
type assets struct {
	files   map[string]asset
	version string
	icons   []string
	missing []string // what `make assets` was not run for
}

type asset struct{ content, zipped []byte }

var assetTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

// loadAssets reads what is embedded: our own files, those of others without
// their folder, and the icons as one file.
func loadAssets() assets { return readAssets(embedded) }

func readAssets(from fs.FS) assets {
	loaded := assets{files: map[string]asset{}}
	sum := sha256.New()
	symbols := bytes.NewBufferString(`<svg xmlns="http://www.w3.org/2000/svg">`)
	_ = fs.WalkDir(from, "assets", func(file string, entry fs.DirEntry, err error) error { // embedded: cannot fail
		if err != nil || entry.IsDir() || assetTypes[path.Ext(file)] == "" {
			return err
		}
		content, err := fs.ReadFile(from, file)
		if name, isIcon := strings.CutPrefix(file, "assets/vendor/icons/"); isIcon {
			name = strings.TrimSuffix(name, ".svg")
			loaded.icons = append(loaded.icons, name)
			fmt.Fprintf(symbols, `<symbol id="%s" viewBox="0 0 24 24">%s</symbol>`, name, shapes(content))
			return err
		}
		loaded.add(path.Base(file), content)
		fmt.Fprintf(sum, "%s %x\n", file, sha256.Sum256(content))
		return err
	})
	symbols.WriteString("</svg>")
	sum.Write(symbols.Bytes())
	loaded.add(sprite, symbols.Bytes())
	loaded.version = hex.EncodeToString(sum.Sum(nil))[:12]
	for _, file := range vendored {
		if _, err := fs.Stat(from, "assets/vendor/"+file); err != nil {
			loaded.missing = append(loaded.missing, file)
		}
	}
	return loaded
}

// shapes is what is drawn in an icon's file.
func shapes(icon []byte) []byte {
	_, inner, _ := bytes.Cut(icon, []byte("<svg"))
	_, inner, _ = bytes.Cut(inner, []byte(">"))
	inner, _, _ = bytes.Cut(inner, []byte("</svg>"))
	return bytes.TrimSpace(inner)
}

func (a assets) add(name string, content []byte) {
	a.files[name] = asset{content, zip(content, gzip.BestCompression)}
}

func zip(content []byte, level int) []byte {
	var zipped bytes.Buffer
	writer, _ := gzip.NewWriterLevel(&zipped, level) // a known level
	_, _ = writer.Write(content)                     // a buffer takes all
	_ = writer.Close()
	return zipped.Bytes()
}

// ServeHTTP answers one file: VERSION/NAME.
func (a assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	version, name := path.Split(r.URL.Path)
	file, ok := a.files[name]
	if !ok {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	header := w.Header()
	header.Set("Content-Type", assetTypes[path.Ext(name)])
	header.Set("Vary", "Accept-Encoding")
	if version == a.version+"/" {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		header.Set("Cache-Control", "no-cache")
	}
	if takesGzip(r) {
		header.Set("Content-Encoding", "gzip")
		_, _ = w.Write(file.zipped) // the client is gone if this fails
		return
	}
	_, _ = w.Write(file.content)
}

// takesGzip reports whether a client understands gzip (RFC 9110 section 12.5.3).
func takesGzip(r *http.Request) bool {
	return slices.ContainsFunc(strings.Split(r.Header.Get("Accept-Encoding"), ","), func(coding string) bool {
		name, weight, _ := strings.Cut(coding, ";")
		return strings.TrimSpace(name) == "gzip" && strings.Trim(weight, " q=0.") != "" == (weight != "")
	})
}
