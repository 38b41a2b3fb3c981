package manifest

// A value is a part of a document, whichever format it is written in.
type value struct {
	kind   kind
	text   string // of a scalar, as it is written
	at     Place
	fields []member // of a mapping, in order
	items  []*value // of a list
}

type member struct {
	name  string
	at    Place
	value *value
}

type kind int

const (
	kindNull  kind = iota
	kindPlain      // a YAML scalar without quotes: what it is depends on the field
	kindText
	kindNumber
	kindBool
	kindList
	kindMapping
)

// The bounds of a document. A site with 10,000 containers, each with services
// and volumes, has about 300,000 values and is 6 deep.
const (
	// MaxSize is how large a file may be, in bytes.
	MaxSize   = 8 << 20
	maxDepth  = 16
	maxFields = 50 // of one mapping
	maxValues = 1_000_000
)

// field finds a field of a mapping.
func (v *value) field(name string) *value {
	for _, field := range v.fields {
		if field.name == name {
			return field.value
		}
	}
	return nil
}

// addField adds a field to a mapping.
func (v *value) addField(name string, at Place, read *value) error {
	if len(v.fields) == maxFields {
		return oneFault(at, "more than %d fields", maxFields)
	}
	v.fields = append(v.fields, member{name, at, read})
	return nil
}
