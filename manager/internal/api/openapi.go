package api

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"opensource.internal/agent/checkin"
)

// openAPI answers the description of the API, made once.
func openAPI(api huma.API, log *slog.Logger) gin.HandlerFunc {
	description, err := json.Marshal(api.OpenAPI())
	if err != nil {
		log.Error("describe API", "err", err)
	}
	return func(c *gin.Context) { serve(c, "application/openapi+json", description) }
}

// serve answers content that stays the same as long as the manager runs.
func serve(c *gin.Context, contentType string, content []byte) {
	c.Header("Content-Type", contentType)
	c.Header("ETag", digest(content))
	c.Header("Cache-Control", revalidate)
	http.ServeContent(c.Writer, c.Request, "", time.Time{}, bytes.NewReader(content))
}

// describeOpen says which operations need no credentials, and that health
// answers with its record when the manager is not ready, too.
func describeOpen(description *huma.OpenAPI) {
	for _, path := range []string{"/health", "/health/live", "/health/ready"} {
		description.Paths[path].Get.Security = []map[string][]string{}
	}
	for _, path := range []string{"/health", "/health/ready"} {
		answers := description.Paths[path].Get.Responses
		answers["503"] = &huma.Response{Description: "The manager is not ready", Content: answers["200"].Content}
	}
	for _, path := range []string{"/session", "/enroll"} {
		description.Paths[path].Post.Security = []map[string][]string{}
	}
}

// describeCheckIn adds the check-in to the description. It is no typed handler
// like the others, so its parts are named here.
func describeCheckIn(description *huma.OpenAPI) {
	schemas := description.Components.Schemas
	request := schemas.Schema(reflect.TypeFor[checkin.Request](), true, "")
	schemas.SchemaFromRef(request.Ref).AdditionalProperties = true // other versions may know more
	snapshot := schemas.Schema(reflect.TypeFor[data[checkin.Snapshot]](), true, "")
	schemas.Schema(reflect.TypeFor[errorBody](), true, "")
	text := &huma.Schema{Type: huma.TypeString}
	checkIn := huma.Operation{
		OperationID: "post-agents", Method: http.MethodPost, Path: "/agents", Tags: []string{"agents"},
		Summary:     "Check in",
		Description: "An agent reports and gets its site's snapshot, or 304 if If-None-Match lists the snapshot's ETag. docs/protocol.md describes both sides.",
		Parameters: []*huma.Param{{
			Name: "If-None-Match", In: "header", Description: "The tag of the snapshot the agent holds", Schema: text,
		}},
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{jsonType: {Schema: request, Example: exampleOfCheckIn}}},
		Responses: map[string]*huma.Response{
			"200": {
				Description: "The snapshot", Content: map[string]*huma.MediaType{jsonType: {Schema: snapshot}},
				Headers: map[string]*huma.Param{"ETag": {Description: "Tag of the snapshot", Schema: text}},
			},
			"304": {Description: "The agent holds the current snapshot"},
		},
	}
	addFaults(&checkIn, []string{
		"malformed_json", "bad_request", "unauthorized", "too_many_requests", "forbidden", "wrong_host", "cross_origin", "site_not_found",
		"request_timeout", "too_large", "unsupported_media_type", "validation_failed", "internal_error", "unavailable",
	})
	description.AddOperation(&checkIn)
}
