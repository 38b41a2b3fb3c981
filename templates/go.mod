module opensource.internal/templates

go 1.26.0
