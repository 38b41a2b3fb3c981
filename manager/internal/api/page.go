package api

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"opensource.internal/manager/internal/auth"
)

// The page for people is made from the description, once, on the server: it has
// no script, loads nothing from elsewhere, and its links hold behind any prefix.

//go:embed page
var pageFiles embed.FS

// page adds the page to a group of routes.
func (a *API) page(members gin.IRoutes, description *huma.OpenAPI) {
	page, err := renderPage(description)
	if err != nil {
		a.log.Error("describe API for people", "err", err)
	}
	style, _ := pageFiles.ReadFile("page/style.css") // embedded
	members.GET("/docs", func(c *gin.Context) { serve(c, "text/html; charset=utf-8", page) })
	members.GET("/docs/style.css", func(c *gin.Context) { serve(c, "text/css; charset=utf-8", style) })
}

// reader lets members in, and shows others the way in: who opens a page has no
// key to send.
func (a *API) reader(c *gin.Context) {
	_, err := a.auth.Authenticate(c.Request)
	if errors.Is(err, auth.ErrUnauthorized) && !carriesCredentials(c.Request) {
		c.Redirect(http.StatusSeeOther, a.prefix+"/sign-in")
		c.Abort()
		return
	}
	a.member(c)
}

func renderPage(description *huma.OpenAPI) ([]byte, error) {
	pages, err := template.ParseFS(pageFiles, "page/docs.html")
	if err != nil {
		return nil, err
	}
	var page bytes.Buffer
	err = pages.ExecuteTemplate(&page, "docs.html", describePage(description))
	return page.Bytes(), err
}

type (
	pageView struct {
		Title, Version, OpenAPI, Base string
		Groups                        []groupView
		Errors                        []errorView
	}
	groupView struct {
		Name       string
		Operations []operationView
	}
	operationView struct {
		ID, Method, Path, Summary, Description string
		Open                                   bool
		Parameters                             []fieldView
		Bodies                                 []bodyView
		Answers                                []answerView
		Errors                                 []errorView
	}
	answerView struct {
		Status, Description, Headers string
		Bodies                       []bodyView
	}
	bodyView struct {
		Type     string
		Fields   []fieldView
		Examples []string
	}
	fieldView struct {
		Name, Type, Meaning string
		Required            bool
	}
	errorView struct {
		Status     int
		Code, When string
	}
)

func describePage(description *huma.OpenAPI) pageView {
	view := pageView{
		Title: description.Info.Title, Version: description.Info.Version, OpenAPI: description.OpenAPI, Base: description.Servers[0].URL,
	}
	for _, fault := range faults {
		view.Errors = append(view.Errors, errorView{fault.status, fault.code, fault.when})
	}
	for _, path := range slices.Sorted(maps.Keys(description.Paths)) {
		item := description.Paths[path]
		name := strings.Split(path, "/")[1]
		if len(view.Groups) == 0 || view.Groups[len(view.Groups)-1].Name != name {
			view.Groups = append(view.Groups, groupView{Name: name})
		}
		group := &view.Groups[len(view.Groups)-1]
		for _, operation := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if operation != nil {
				group.Operations = append(group.Operations, describeOperation(description.Components.Schemas, operation))
			}
		}
	}
	return view
}

func describeOperation(schemas huma.Registry, o *huma.Operation) operationView {
	view := operationView{
		ID: o.OperationID, Method: o.Method, Path: o.Path, Summary: o.Summary, Description: o.Description,
		Open: o.Security != nil && len(o.Security) == 0,
	}
	for _, parameter := range o.Parameters {
		meaning := parameter.Description
		if meaning == "" {
			meaning = parameter.Schema.Description
		}
		view.Parameters = append(view.Parameters, fieldView{
			Name: parameter.Name, Type: typeOf(parameter.Schema) + ", " + parameter.In, Meaning: meaning, Required: parameter.Required,
		})
	}
	if o.RequestBody != nil {
		view.Bodies = describeBodies(schemas, o.RequestBody.Content)
	}
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		response := o.Responses[status]
		if code, err := strconv.Atoi(status); err != nil || code < http.StatusBadRequest {
			view.Answers = append(view.Answers, answerView{
				Status: status, Description: response.Description, Bodies: describeBodies(schemas, response.Content),
				Headers: strings.Join(slices.Sorted(maps.Keys(response.Headers)), ", "),
			})
		}
	}
	view.Errors = documentedFaults(o)
	return view
}

// documentedFaults are the errors of an operation, with the words of faults.
func documentedFaults(o *huma.Operation) []errorView {
	var views []errorView
	for _, fault := range faults {
		response := o.Responses[strconv.Itoa(fault.status)]
		if response == nil || response.Content[jsonType] == nil {
			continue
		}
		if _, documented := response.Content[jsonType].Examples[fault.code]; documented {
			views = append(views, errorView{fault.status, fault.code, fault.when})
		}
	}
	return views
}

func describeBodies(schemas huma.Registry, content map[string]*huma.MediaType) []bodyView {
	var views []bodyView
	for _, contentType := range slices.Sorted(maps.Keys(content)) {
		media := content[contentType]
		view := bodyView{Type: contentType}
		if media.Schema != nil {
			view.Fields = describeFields(schemas, media.Schema, "", 0)
		}
		if media.Example != nil {
			view.Examples = append(view.Examples, indented(media.Example))
		}
		for _, name := range slices.Sorted(maps.Keys(media.Examples)) {
			view.Examples = append(view.Examples, indented(media.Examples[name].Value))
		}
		views = append(views, view)
	}
	return views
}

// maxNesting is how deep fields are listed; examples show the rest.
const maxNesting = 3

// describeFields lists the fields of a record, those within by their way: a.b.
func describeFields(schemas huma.Registry, s *huma.Schema, within string, depth int) []fieldView {
	s = resolve(schemas, s)
	if s.Items != nil {
		return describeFields(schemas, s.Items, within+"[]", depth)
	}
	if depth == maxNesting {
		return nil
	}
	var views []fieldView
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property, way := s.Properties[name], strings.TrimPrefix(within+"."+name, ".")
		views = append(views, fieldView{
			Name: way, Type: typeOf(resolve(schemas, property)), Required: slices.Contains(s.Required, name),
			Meaning: cmp.Or(property.Description, resolve(schemas, property).Description),
		})
		views = append(views, describeFields(schemas, property, way, depth+1)...)
	}
	return views
}

func resolve(schemas huma.Registry, s *huma.Schema) *huma.Schema {
	if len(s.AnyOf) > 0 {
		s = s.AnyOf[0]
	}
	if s.Ref != "" {
		s = schemas.SchemaFromRef(s.Ref)
	}
	return s
}

// typeOf is the type of a value with its limits, in words.
func typeOf(s *huma.Schema) string {
	words := cmp.Or(s.Format, s.Type)
	if s.Type == huma.TypeInteger || s.Type == huma.TypeNumber {
		words = s.Type
	}
	if len(s.Enum) > 0 {
		words = strings.ReplaceAll(strings.Trim(fmt.Sprint(s.Enum), "[]"), " ", " | ")
	}
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		words += fmt.Sprintf(" %v to %v", *s.Minimum, *s.Maximum)
	case s.Minimum != nil:
		words += fmt.Sprintf(" from %v", *s.Minimum)
	}
	if s.Default != nil {
		words += fmt.Sprintf(", default %v", s.Default)
	}
	if s.Nullable {
		words += " or null"
	}
	return words
}

func indented(example any) string {
	if text, isText := example.(string); isText {
		return text
	}
	encoded, err := json.MarshalIndent(example, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}
