package api

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/negotiation"

	"opensource.internal/manager/internal/manifest"
	"opensource.internal/manager/internal/store"
)

const yamlType = "application/yaml" // RFC 9512

// manifestAnswer is a manifest in the format that the client accepts. Its tag is
// the same in both: whoever has looked at one knows the other.
type manifestAnswer struct {
	ContentType string `header:"Content-Type"`
	Vary        string `header:"Vary"`
	ETag        string `header:"ETag"`
	Body        []byte
}

// getManifest writes a site down as a file.
func (a *API) getManifest(ctx context.Context, in *ByID) (*manifestAnswer, error) {
	present, err := a.store.Read(ctx, store.Scope{IDs: []int64{in.ID}})
	if err != nil {
		return nil, err
	}
	if len(present.Sites) == 0 {
		return nil, store.ErrNotFound
	}
	written, err := manifest.Export(present, false, manifest.YAML)
	if err != nil {
		return nil, err
	}
	answer := &manifestAnswer{ContentType: yamlType, Vary: "Accept", ETag: digest(written), Body: written}
	if negotiation.SelectQValueFast(exchangeOf(ctx).Header("Accept"), []string{yamlType, jsonType}) == jsonType {
		answer.ContentType = jsonType
		answer.Body, err = manifest.Export(present, false, manifest.JSON)
	}
	return answer, err
}

type putManifest struct {
	ByID
	DryRun  bool   `query:"dryRun" doc:"Find out what would change, by doing and undoing it"`
	Prune   bool   `query:"prune" doc:"Delete what is stored of the site and is not in the manifest"`
	RawBody []byte `contentType:"application/yaml"`
}

type manifestApplied struct {
	ETag string `header:"ETag"`
	Body data[manifest.Report]
}

// putManifest makes a site what a file says. The tag is that of the manifest as
// it is afterwards.
func (a *API) putManifest(ctx context.Context, in *putManifest) (*manifestApplied, error) {
	manifests, err := readManifest(exchangeOf(ctx), in.RawBody)
	if err != nil {
		return nil, err
	}
	var answer manifestApplied
	err = a.store.Atomically(ctx, func(ctx context.Context) error {
		report, err := manifest.Apply(ctx, a.store, manifests, manifest.Options{
			SiteID: in.ID, Prune: in.Prune, DryRun: in.DryRun, Check: requireSite,
		})
		if err != nil {
			return err
		}
		written, err := a.getManifest(ctx, &in.ByID)
		if err != nil {
			return err
		}
		answer = manifestApplied{ETag: written.ETag, Body: data[manifest.Report]{*report}}
		return nil
	})
	return &answer, wrongManifest(http.StatusUnprocessableEntity, "validation_failed", err)
}

// readManifest reads the one manifest of a body.
func readManifest(exchange huma.Context, body []byte) ([]*manifest.Manifest, error) {
	format := manifest.YAML
	if declared, _, _ := mime.ParseMediaType(exchange.Header("Content-Type")); declared == jsonType || declared == "" {
		format = manifest.JSON
	}
	manifests, err := manifest.Read("", body, format)
	if err != nil {
		return nil, wrongManifest(http.StatusBadRequest, "malformed_manifest", err)
	}
	if len(manifests) > 1 || manifests[0].Site == nil {
		return nil, invalidFields(map[string]string{"site": "has to be there once: this is the manifest of one site"})
	}
	return manifests, nil
}

func requireSite(present store.Contents) error {
	if len(present.Sites) == 0 {
		return store.ErrNotFound
	}
	return nil
}

// wrongManifest names every fault with its place, the field by its path.
func wrongManifest(status int, code string, err error) error {
	var found *manifest.FaultsError
	if !errors.As(err, &found) {
		return err
	}
	fields, lines := map[string]string{}, []string{}
	for _, fault := range found.Faults {
		if len(lines) == maxFaults {
			lines = append(lines, fmt.Sprintf("and %d more", len(found.Faults)-maxFaults))
			break
		}
		path, text := fault.Path, placed(fault)
		if path == "" {
			path = "manifest"
		}
		lines = append(lines, path+": "+text)
		if _, named := fields[path]; !named {
			fields[path] = text
		}
	}
	return &Error{Status: status, Code: code, Message: strings.Join(lines, "; "), Fields: fields}
}

func placed(fault manifest.Fault) string {
	switch {
	case fault.Line == 0:
		return fault.Message
	case fault.Column == 0:
		return fmt.Sprintf("%s (line %d)", fault.Message, fault.Line)
	}
	return fmt.Sprintf("%s (line %d, column %d)", fault.Message, fault.Line, fault.Column)
}

// wholeSite lets an operation take a manifest instead of a record: it may be
// large, and takes its time. The body is read by its handler.
func wholeSite(o *huma.Operation) {
	o.MaxBodyBytes = manifest.MaxSize
	o.Metadata = map[string]any{patience: true}
	addFaults(o, []string{"malformed_manifest"})
}

// describeManifest adds both formats of manifests, which huma cannot know.
func describeManifest(description *huma.OpenAPI) {
	schema := manifest.Schema()
	delete(schema, "$schema") // that of the description
	of := &huma.Schema{Extensions: schema}
	content := map[string]*huma.MediaType{
		yamlType: {Schema: of, Example: manifestExample},
		jsonType: {Schema: of, Example: map[string]any{
			"version": 1, "site": map[string]any{"name": "attic"}, "nodes": []any{map[string]any{"name": "pve2"}},
			"containers": []any{map[string]any{"hostname": "mail", "node": "pve2", "ipv4Address": "192.0.2.150"}},
		}},
	}
	path := description.Paths["/sites/{id}/manifest"]
	path.Get.Responses["200"].Content = content
	path.Put.RequestBody.Content = content
}

const manifestExample = `version: 1
site:
  name: attic
nodes:
  - name: pve2
containers:
  - hostname: mail
    node: pve2
    ipv4Address: 192.0.2.150
`
