package manifest

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// readYAML returns the documents of a YAML file.
func readYAML(file string, data []byte) ([]*value, error) {
	if line, valid := checkText(data); !valid {
		return nil, oneFault(Place{File: file, Line: line}, "the file is not UTF-8 text")
	}
	tokens := lexer.Tokenize(string(data))
	if deep := tooDeep(tokens); deep != nil {
		return nil, oneFault(Place{file, deep.Line, deep.Column}, "nested deeper than any manifest (%d levels)", maxDepth)
	}
	parsed, err := parser.Parse(tokens, 0)
	var syntax *yaml.SyntaxError
	switch {
	case errors.As(err, &syntax) && syntax.Token != nil && syntax.Token.Position != nil:
		words := syntax.Message
		if strings.Contains(words, "\t") { // quoted as it is, and nobody sees it
			words = "there is a tab: YAML is indented with blanks"
		}
		return nil, oneFault(Place{file, syntax.Token.Position.Line, syntax.Token.Position.Column}, "%s", words)
	case err != nil:
		return nil, oneFault(Place{File: file}, "not YAML: %v", err)
	}
	r := &yamlReader{file: file}
	var documents []*value
	for _, document := range parsed.Docs {
		if document.Body == nil || document.Body.Type() == ast.CommentType {
			continue // a comment before the first ---
		}
		r.anchors = map[string]ast.Node{}
		read, err := r.read(document.Body, 0)
		if err != nil {
			return nil, err
		}
		documents = append(documents, read)
	}
	return documents, nil
}

// checkText finds the line with the first byte that is not UTF-8.
func checkText(data []byte) (line int, valid bool) {
	line = 1
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size <= 1 {
			return line, false
		}
		if r == '\n' {
			line++
		}
		data = data[size:]
	}
	return line, true
}

// tooDeep finds where brackets, or lists and keys on one line, are nested deeper
// than in any manifest. The parser takes quadratic time for these.
func tooDeep(tokens token.Tokens) *token.Position {
	flow, line, begun := 0, 0, 0
	for _, t := range tokens {
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType, token.AnchorType, token.TagType:
			if t.Position.Line != line {
				line, begun = t.Position.Line, 0
			}
			if flow == 0 {
				begun++
			}
		}
		if flow > maxDepth || begun > maxDepth || flow == 0 && t.Type == token.SequenceEntryType && t.Position.Column > 20*maxDepth {
			return t.Position
		}
	}
	return nil
}

func oneFault(at Place, format string, args ...any) error {
	return &FaultsError{[]Fault{{Place: at, Message: fmt.Sprintf(format, args...)}}}
}

type yamlReader struct {
	file    string
	anchors map[string]ast.Node
	values  int
}

func (r *yamlReader) place(t *token.Token) Place {
	if t == nil || t.Position == nil {
		return Place{File: r.file}
	}
	return Place{r.file, t.Position.Line, t.Position.Column}
}

// read turns a node and all in it into values. An alias is read again wherever
// it is used, so their number is bounded: a small file can mean a huge one.
func (r *yamlReader) read(n ast.Node, depth int) (*value, error) {
	at := r.place(n.GetToken())
	if r.values++; r.values > maxValues {
		return nil, oneFault(at, "more than %d values, aliases included", maxValues)
	}
	if depth > maxDepth {
		return nil, oneFault(at, "nested deeper than any manifest (%d levels)", maxDepth)
	}
	switch n := n.(type) {
	case *ast.NullNode:
		return &value{kind: kindNull, at: at}, nil
	case *ast.StringNode:
		if quoted := n.Token.Type == token.SingleQuoteType || n.Token.Type == token.DoubleQuoteType; quoted {
			return &value{kind: kindText, text: n.Value, at: at}, nil
		}
		return &value{kind: kindPlain, text: n.Value, at: at}, nil
	case *ast.LiteralNode:
		return &value{kind: kindText, text: n.Value.Value, at: at}, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return &value{kind: kindPlain, text: n.GetToken().Value, at: at}, nil
	case *ast.SequenceNode:
		return r.readList(n, depth)
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			at = r.place(n.Values[0].Key.GetToken())
		}
		return r.readMapping(at, n.Values, depth)
	case *ast.MappingValueNode:
		return r.readMapping(r.place(n.Key.GetToken()), []*ast.MappingValueNode{n}, depth)
	case *ast.AnchorNode:
		r.anchors[n.Name.GetToken().Value] = n.Value
		return r.read(n.Value, depth+1)
	case *ast.AliasNode:
		return r.readAlias(n, depth)
	}
	return nil, oneFault(at, "a manifest has no %s", n.Type())
}

func (r *yamlReader) readAlias(n *ast.AliasNode, depth int) (*value, error) {
	name := n.Value.GetToken().Value
	target, found := r.anchors[name]
	if !found {
		return nil, oneFault(r.place(n.GetToken()), "there is no anchor &%s before this", name)
	}
	return r.read(target, depth+1)
}

func (r *yamlReader) readList(n *ast.SequenceNode, depth int) (*value, error) {
	list := &value{kind: kindList, at: r.place(n.GetToken())}
	for _, node := range n.Values {
		item, err := r.read(node, depth+1)
		if err != nil {
			return nil, err
		}
		list.items = append(list.items, item)
	}
	return list, nil
}

// readMapping reads the fields, then those that are merged in (<<) and not
// there already.
func (r *yamlReader) readMapping(at Place, entries []*ast.MappingValueNode, depth int) (*value, error) {
	mapping := &value{kind: kindMapping, at: at}
	var merged []*value
	for _, entry := range entries {
		read, err := r.read(entry.Value, depth+1)
		if err != nil {
			return nil, err
		}
		key, name := r.place(entry.Key.GetToken()), ""
		switch k := entry.Key.(type) {
		case *ast.MergeKeyNode:
			merged = append(merged, read)
			continue
		case *ast.StringNode:
			name = k.Value
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
			name = k.GetToken().Value
		default:
			return nil, oneFault(key, "a field is named by a plain word")
		}
		if err := mapping.addField(name, key, read); err != nil {
			return nil, err
		}
	}
	for _, from := range merged {
		if from.kind != kindMapping {
			return nil, oneFault(from.at, "<< takes the alias of a mapping")
		}
		for _, field := range from.fields {
			if mapping.field(field.name) == nil {
				mapping.fields = append(mapping.fields, field)
			}
		}
	}
	return mapping, nil
}
