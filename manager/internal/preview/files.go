package preview

import (
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/render"
)

// Preview is what a snapshot becomes on a host.
type Preview struct {
	Host     Basis     `json:"host"`
	Services []Service `json:"services" nullable:"false"`
}

// Service is a managed service with its files.
type Service struct {
	Name  string `json:"name" example:"nginx"`
	Files []File `json:"files" nullable:"false" doc:"None if there is nothing to manage or to render"`
	// Note says why there are no files.
	Note    *string                   `json:"note" doc:"Why there are no files"`
	LeftOut []checkin.QuarantinedItem `json:"leftOut" nullable:"false" doc:"Records that cannot be served, and why"`

	failed bool // there are no files because of a fault
}

// File is a rendered file. REVISION stands where the agent writes a digest.
type File struct {
	Path    string `json:"path" example:"/etc/nginx/nginx.conf"`
	Content string `json:"content"`
	// Lines says which record a line was made of, by its number from 1.
	Lines map[int]render.Record `json:"-"`
}

// revisionPlace is put where a rendered file has its own digest. That covers
// the certificates' contents, which are not known here; and in a comparison it
// would differ without a meaning.
const revisionPlace = "REVISION"

// Of renders a snapshot for a host. Manager is the manager's own version.
func Of(s checkin.Snapshot, h Host, manager string) Preview {
	return Preview{Host: h.basis(manager, s), Services: h.render(s)}
}

// The names of the managed services.
const (
	nginx   = "nginx"
	dnsmasq = "dnsmasq"
)

func (h Host) render(s checkin.Snapshot) []Service {
	templates, facts := render.LoadTemplates(nil), h.facts()
	one := func(name string, installed bool, rendering func(checkin.Snapshot, render.Facts, *render.Templates) (render.Result, error)) Service {
		if !installed {
			return failed(name, name+" is not installed on the host")
		}
		result, err := rendering(s, facts, templates)
		if err != nil {
			return failed(name, err.Error())
		}
		return shown(name, result)
	}
	return []Service{
		one(nginx, h.NGINX != nil, render.NGINX),
		one(dnsmasq, h.DNSMasq != nil, render.DNSMasq),
	}
}

func failed(name, why string) Service {
	return Service{Name: name, Files: []File{}, LeftOut: []checkin.QuarantinedItem{}, Note: &why, failed: true}
}

func shown(name string, result render.Result) Service {
	service := Service{Name: name, Files: []File{}, LeftOut: result.LeftOut}
	if service.LeftOut == nil {
		service.LeftOut = []checkin.QuarantinedItem{}
	}
	if result.Skipped != "" {
		service.Note = &result.Skipped
	}
	blank := strings.NewReplacer(
		result.Revision, revisionPlace,
		render.DNSMasqSentinel(result.Revision), render.DNSMasqSentinel(revisionPlace),
	)
	for _, file := range result.Files {
		content := string(file.Content)
		if result.Revision != "" {
			content = blank.Replace(content)
		}
		service.Files = append(service.Files, File{Path: file.Path, Content: content, Lines: file.Lines})
	}
	return service
}

// FileDiff is a rendered file that differs.
type FileDiff struct {
	Service string `json:"service" example:"nginx"`
	Path    string `json:"path" example:"/etc/nginx/nginx.conf"`
	Diff    string `json:"diff" doc:"Unified"`
}

// maxDiffed is the size of a file up to which it is compared line by line, in
// bytes: many times that of the largest site.
const maxDiffed = 16 << 20

// compareFiles lists the files that differ.
func compareFiles(before, after []Service) []FileDiff {
	diffs := []FileDiff{}
	for i, service := range after {
		was := map[string]string{}
		for _, file := range before[i].Files {
			was[file.Path] = file.Content
		}
		for _, file := range service.Files {
			if was[file.Path] != file.Content {
				diffs = append(diffs, FileDiff{service.Name, file.Path, unified(file.Path, was[file.Path], file.Content)})
			}
		}
	}
	return diffs
}

func unified(path, before, after string) string {
	if len(before)+len(after) > maxDiffed {
		return "The files differ, and are too large to be compared line by line.\n"
	}
	return udiff.Unified(path, path, before, after)
}
