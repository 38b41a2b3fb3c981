package api

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"opensource.internal/agent/checkin"
)

// bodies are examples of bodies, by the name of their schema, that cannot be
// made from those of their fields: of a change, which has few fields, and of
// what comes in several kinds.
var bodies = map[string][]any{
	"SitePatch":      {object{"dnsForwarders": "9.9.9.9,149.112.112.112", "externalIp": nil}},
	"NodePatch":      {object{"ipv4Address": "192.0.2.11"}},
	"ContainerPatch": {object{"owner": "bob", "macAddress": nil}},
	"ServiceCreate": {
		object{"type": "http", "internalPort": 8080, "externalHostname": "app", "externalDomainId": 1},
		object{"type": "transport", "internalPort": 22, "protocol": "tcp"},
		object{"type": "dns", "internalPort": 5060, "dnsName": "_sip._tcp"},
	},
	"NotificationTargetPatch": {object{"severity": "error", "siteIds": nil}},
	"RemovalsConfirm":         {object{}},
	"PinRequest":              {object{"revision": 1, "reason": "the new proxy settings break sign-in"}},
	"RestoreRequest":          {object{}},
	"PublishRequest":          {object{"note": "move the wiki to its new host"}},
	"ServicePatch":            {object{"internalPort": 8081}},
	"VolumePatch":             {object{"mode": "ro"}},
	"ExternalDomainPatch":     {object{"defaultSiteId": nil}},
	"ApiKeyCreate": {
		object{"name": "deploy", "role": "viewer"},
		object{"name": "agent of lab", "role": "agent", "siteId": 1},
	},
}

type object = map[string]any

// values are examples of fields, by name, where no tag gives one. Null is the
// usual value of those that say what is wrong.
var values = object{
	"id": 1, "siteId": 1, "nodeId": 1, "containerId": 1, "externalDomainId": 1, "defaultSiteId": 1,
	"total": 1, "limit": 50, "offset": 0, "revision": 7, "schemaVersion": 2,
	"hostname": "web", "owner": "alice", "ipv4Address": "192.0.2.101", "macAddress": "02:00:00:00:00:01",
	"peerAddress": "203.0.113.7", "externalIp": "203.0.113.7", "internalDomain": "lab.internal",
	"dhcpRange": "192.0.2.100,192.0.2.200", "subnetMask": "255.255.255.0", "gateway": "192.0.2.1",
	"dnsForwarders": "9.9.9.9,1.1.1.1", "volumesRoot": "/mnt/volumes", "portRange": "2000-2999", "publishing": "auto",
	"internalPort": 8080, "externalPort": nil, "externalHostname": "app", "backendProtocol": "http", "authRequired": false,
	"protocol": nil, "recordType": nil, "dnsName": nil, "authServer": "http://192.0.2.30:4180",
	"mountPath": "/var/lib/data", "mode": "rw", "hostPath": "/mnt/volumes/site-1/alice/web/data", "uid": 100000, "gid": 100000,
	"statusMessage": nil, "note": nil, "publicUrlMismatch": nil, "guard": nil, "clockSkewMs": 12,
	"prefix": "8d0c2f4a", "key": "osk_8d0c2f4a_d41d8cd98f00b204e9800998ecf8427e", "createdBy": "ada",
	"expiresAt": nil, "revokedAt": nil, "password": "correct horse battery",
	"etag": `"2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"`,
}

// completeDescription adds to the description what follows from the rest of it:
// the headers of answers, and an example of every body.
func completeDescription(description *huma.OpenAPI) {
	nullableFields(description.Components.Schemas)
	for _, item := range description.Paths {
		for _, operation := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if operation == nil {
				continue
			}
			addHeaders(operation)
			addExamples(description.Components.Schemas, operation)
		}
	}
}

// nullableFields lets fields be null of which huma does not know that they can
// be: pointers to records, and texts of the contract that are not set.
func nullableFields(schemas huma.Registry) {
	for name, schema := range schemas.Map() {
		t := schemas.TypeFromRef(schemaPrefix + name)
		for t != nil && t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t == nil || t.Kind() != reflect.Struct {
			continue
		}
		for _, field := range reflect.VisibleFields(t) {
			fieldName, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			property := schema.Properties[fieldName]
			switch {
			case property == nil:
			case field.Type == reflect.TypeFor[checkin.Text]():
				property.Nullable = true
			case property.Ref != "" && field.Type.Kind() == reflect.Pointer:
				schema.Properties[fieldName] = &huma.Schema{
					Description: property.Description,
					AnyOf:       []*huma.Schema{{Ref: property.Ref}, {Type: "null"}},
				}
			}
		}
	}
}

// addHeaders describes the tag of what a successful answer shows.
func addHeaders(o *huma.Operation) {
	shown := o.Responses["200"]
	if o.Method != http.MethodGet || shown == nil || o.Responses["304"] == nil {
		return
	}
	if shown.Headers == nil {
		shown.Headers = map[string]*huma.Param{}
	}
	shown.Headers["ETag"] = &huma.Param{Description: "Tag of what is shown, for If-None-Match and If-Match", Schema: &huma.Schema{Type: huma.TypeString}}
}

func addExamples(schemas huma.Registry, o *huma.Operation) {
	if o.RequestBody != nil {
		for _, media := range o.RequestBody.Content {
			addExample(schemas, media)
		}
	}
	for _, response := range o.Responses {
		for _, media := range response.Content {
			addExample(schemas, media)
		}
	}
}

func addExample(schemas huma.Registry, media *huma.MediaType) {
	if media.Schema == nil || media.Example != nil || len(media.Examples) > 0 {
		return
	}
	named := bodies[strings.TrimPrefix(media.Schema.Ref, schemaPrefix)]
	if len(named) < 2 {
		media.Example = exampleOf(schemas, "", media.Schema)
		return
	}
	media.Examples = map[string]*huma.Example{}
	for n, body := range named {
		media.Examples[string(rune('a'+n))] = &huma.Example{Value: body}
	}
}

// exampleOf makes an example of a schema: its own, that of its name, or one of
// its parts.
func exampleOf(schemas huma.Registry, name string, s *huma.Schema) any {
	if len(s.Examples) > 0 {
		return s.Examples[0]
	}
	if example, known := values[name]; known && suits(example, s) {
		return example
	}
	if s.Ref != "" {
		if named := bodies[strings.TrimPrefix(s.Ref, schemaPrefix)]; len(named) > 0 {
			return named[0]
		}
		return exampleOf(schemas, name, schemas.SchemaFromRef(s.Ref))
	}
	switch {
	case len(s.Examples) > 0:
		return s.Examples[0]
	case len(s.AnyOf) > 0:
		return exampleOf(schemas, name, s.AnyOf[0])
	case len(s.Enum) > 0:
		return s.Enum[0]
	}
	return exampleOfType(schemas, s)
}

// suits reports whether the example of a name can be one of a schema that has
// the same name elsewhere.
func suits(example any, s *huma.Schema) bool {
	switch example.(type) {
	case nil:
		return s.Nullable || len(s.AnyOf) > 0
	case int:
		return s.Type == huma.TypeInteger
	case bool:
		return s.Type == huma.TypeBoolean
	}
	return s.Type == huma.TypeString && s.Format == "" && len(s.Enum) == 0
}

func exampleOfType(schemas huma.Registry, s *huma.Schema) any {
	switch s.Type {
	case huma.TypeObject:
		example := object{}
		for _, property := range slices.Sorted(maps.Keys(s.Properties)) {
			example[property] = exampleOf(schemas, property, s.Properties[property])
		}
		return example
	case huma.TypeArray:
		return []any{exampleOf(schemas, "", s.Items)}
	case huma.TypeBoolean:
		return true
	case huma.TypeInteger:
		return 1
	case huma.TypeNumber:
		return 1.5
	case huma.TypeString:
		if s.Format == "date-time" {
			return "2026-03-01T09:30:00Z"
		}
		return "text"
	}
	return object{}
}

const schemaPrefix = "#/components/schemas/"

// exampleOfCheckIn is one of what an agent sends.
var exampleOfCheckIn = json.RawMessage(`{"siteId":1,"hostname":"agent","currentTime":1771234560,"ipv4Address":"192.0.2.5",` +
	`"services":{"nginx":{"state":"active","lastApply":"success"},"dnsmasq":{"state":"active","lastApply":"failure","message":"bad option at line 12"}},` +
	`"volumes":{"42":{"applied":true}}}`)
