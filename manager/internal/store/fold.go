package store

import (
	"strings"
	"unicode"
)

// fold is a text as it is compared in any case.
func fold(text string) string { return strings.Map(foldLetter, text) }

// foldLetter is one of the letters that differ in their case alone: of A to Z,
// the small one, and of all others the first that Unicode has.
func foldLetter(letter rune) rune {
	if letter <= unicode.MaxASCII {
		return unicode.ToLower(letter)
	}
	first := letter
	for _, other := range casesOf(letter) {
		first = min(first, other)
	}
	return first
}

// casesOf are the other letters that differ from one in their case alone, but
// for those of A to Z.
func casesOf(letter rune) (others []rune) {
	for other := unicode.SimpleFold(letter); other != letter; other = unicode.SimpleFold(other) {
		if other > unicode.MaxASCII {
			others = append(others, other)
		}
	}
	return others
}

// folded is the SQL of a column, folded as far as it is to be compared with a
// text that fold has folded. Both databases fold A to Z; of other letters SQLite
// knows nothing, and what PostgreSQL knows is up to its locale.
func folded(column, text string) (expression string, args []any) {
	expression = "lower(" + column + ")"
	done := map[rune]bool{}
	for _, letter := range fold(text) {
		if letter <= unicode.MaxASCII || done[letter] {
			continue
		}
		done[letter] = true
		for _, other := range casesOf(letter) {
			expression = "replace(" + expression + ", ?, ?)"
			args = append(args, string(other), string(letter))
		}
	}
	return expression, args
}

// named is the condition that a column is a name, in any case.
func named(column, name string) (condition string, args []any) {
	expression, args := folded(column, name)
	return expression + " = ?", append(args, fold(name))
}
