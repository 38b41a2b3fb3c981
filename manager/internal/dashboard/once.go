package dashboard

import (
	"net/http"
	"net/url"
)

// shown is a secret that was just made, and what to do with it. The answer to its
// form is the one page that has it.
type shown struct {
	Title  string
	Done   string // "The key was created."
	Name   string // of the secret: "The key"
	Secret string
	Use    string // where the line belongs, if there is one
	Line   string
	Note   string
	Path   string // the page about what was made, where a reload leads
	Back   crumb
}

// fillOnce shows a form, and what is made of what was typed, which can be seen
// only now.
func (v *visit) fillOnce(p page, f *form, create func(typed url.Values) (shown, error)) error {
	if v.Request.Method != http.MethodPost {
		return v.show(http.StatusOK, p, recordForm(p, f))
	}
	typed, err := v.typed()
	if err != nil {
		return err
	}
	made, err := create(typed)
	if status := f.refused(err); status != 0 {
		return v.show(status, p, recordForm(p, f))
	}
	if err != nil {
		return err
	}
	p = v.page(made.Title, p.Section, made.Back)
	return v.show(http.StatusCreated, p, shownOnce(p, made))
}

// askOnce asks, and shows what is made then, which can be seen only then.
func (v *visit) askOnce(p page, q question, create func() (shown, error)) error {
	if v.Request.Method != http.MethodPost {
		return v.show(http.StatusOK, p, questionPage(p, q))
	}
	made, err := create()
	if err != nil {
		return err
	}
	p = v.page(made.Title, p.Section, made.Back)
	return v.show(http.StatusCreated, p, shownOnce(p, made))
}

// question asks before something is done that cannot be undone.
type question struct {
	Text, Note     string
	Button, Cancel string
}

// ask asks, and does it once that was seen.
func (v *visit) ask(p page, q question, do func() (done, error)) error {
	if v.Request.Method != http.MethodPost {
		return v.show(http.StatusOK, p, questionPage(p, q))
	}
	result, err := do()
	if err != nil {
		return err
	}
	return v.finish(result)
}
