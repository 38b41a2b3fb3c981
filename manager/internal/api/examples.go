package api

import "github.com/danielgtaylor/huma/v2"

func describeExamples(*huma.OpenAPI) {}
