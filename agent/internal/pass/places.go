package pass

import (
	"io/fs"
	"os"

	"opensource.internal/agent/internal/host"
	"opensource.internal/agent/render"
)

const (
	templatesDir = "/etc/opensource-agent/templates"
	docsDir      = "/usr/share/opensource-agent/docs"
)

// relocated returns the paths that rendered files name: what is written lies
// below root, what is only read does so if it exists there.
func relocated(root string) render.Paths {
	p := render.DefaultPaths()
	for _, written := range []*string{
		&p.NGINXConf, &p.NGINXPid, &p.NGINXErrorLog, &p.NGINXLog, &p.ACMERoot, &p.AuthCache, &p.DNSMasqConf, &p.DNSMasqDir,
	} {
		*written = root + *written
	}
	for _, read := range []*string{&p.CertDir, &p.KeyDir, &p.SnakeoilCert, &p.SnakeoilKey, &p.ErrorPages} {
		*read = host.Path(root, *read)
	}
	return p
}

// TemplatesDir is where an administrator puts templates.
func TemplatesDir(root string) string { return host.Path(root, templatesDir) }

// Overrides returns the folder of templates that take the place of the
// embedded ones, or nil if there is none.
func Overrides(root string) fs.FS {
	dir := TemplatesDir(root)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil
	}
	return os.DirFS(dir)
}

// docsRoot returns the folder of the documentation site, or nothing if it is
// not installed.
func docsRoot(root string) string {
	dir := host.Path(root, docsDir)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}
