package host

import (
	"path/filepath"
	"strings"
)

// moduleFile is a file that loads modules into nginx.
type moduleFile struct {
	Name   string
	File   FileID
	loaded []string // as written, after load_module
}

// maxModuleFile bounds what is read of one file, in bytes.
const maxModuleFile = 64 << 10

// loadModule is nginx's load_module directive; a comment does not begin a line
// like that.
var loadModule = pattern(`(?m)^\s*load_module\s+["']?([^"';\s]+)["']?\s*;`)

// readModules reads what nginx would include. A file that is a dead link or
// cannot be read loads nothing; nginx -t has its own words for it.
func readModules(dir string) []moduleFile {
	paths, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*.conf"))
	if err != nil {
		return nil
	}
	var files []moduleFile
	for _, path := range paths {
		file := moduleFile{Name: filepath.Base(path)}
		if strings.HasPrefix(file.Name, ".") {
			continue // glob(3) does not match it
		}
		content, id, err := readFile(path, maxModuleFile)
		if err == nil {
			file.File = id
			for _, match := range loadModule().FindAllSubmatch(content, -1) {
				file.loaded = append(file.loaded, string(match[1]))
			}
		}
		files = append(files, file)
	}
	return files
}

// escapeGlob makes a path mean itself in a pattern.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// loadsStream tells whether the stream module is loaded and installed.
// Relative paths begin at nginx's prefix.
func loadsStream(files []moduleFile, prefix string) bool {
	for _, file := range files {
		for _, module := range file.loaded {
			if filepath.Base(module) != "ngx_stream_module.so" {
				continue
			}
			if !filepath.IsAbs(module) {
				module = filepath.Join(prefix, module)
			}
			if identify(module) != (FileID{}) {
				return true
			}
		}
	}
	return false
}
