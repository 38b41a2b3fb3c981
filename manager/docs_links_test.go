package manager_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The folders and files in which people read.
var readable = []string{"../README.md", "../CONTRIBUTING.md", "../docs"}

var (
	fencedBlock = regexp.MustCompile("(?ms)^```.*?^```")
	codeSpan    = regexp.MustCompile("`[^`\n]*`")
	link        = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading     = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	inHeading   = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// Every relative link of every page leads to a file, and to a heading of it.
func TestLinksLeadSomewhere(t *testing.T) {
	links := 0
	for _, path := range pages(t) {
		for _, target := range linksOf(page(t, path)) {
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(target, "#")
			to := path
			if file != "" {
				to = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s, which does not exist", path, target)
				continue
			}
			if anchor != "" && !anchorsOf(page(t, to))[anchor] {
				t.Errorf("%s links to %s: %s has no such heading", path, target, to)
			}
		}
	}
	if links < 100 {
		t.Fatalf("only %d links were found", links)
	}
}

// A page that the index does not name is found by nobody.
func TestIndexNamesEveryPage(t *testing.T) {
	index := "../docs/README.md"
	named := map[string]bool{index: true}
	for _, target := range linksOf(page(t, index)) {
		file, _, _ := strings.Cut(target, "#")
		named[filepath.Join("../docs", file)] = true
	}
	for _, path := range pages(t) {
		if strings.HasPrefix(path, "../docs/") && !named[path] {
			t.Errorf("%s does not name %s", index, path)
		}
	}
}

// pages lists what there is to read.
func pages(t *testing.T) (list []string) {
	t.Helper()
	for _, root := range readable {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && filepath.Ext(path) == ".md" {
				list = append(list, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return list
}

func page(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// linksOf lists the targets of the links of a page, without what is code.
func linksOf(text string) (targets []string) {
	text = codeSpan.ReplaceAllString(fencedBlock.ReplaceAllString(text, ""), "")
	for _, found := range link.FindAllStringSubmatch(text, -1) {
		targets = append(targets, found[1])
	}
	return targets
}

// anchorsOf are the names that browsers of repositories give to headings.
func anchorsOf(text string) map[string]bool {
	anchors := map[string]bool{}
	for _, found := range heading.FindAllStringSubmatch(fencedBlock.ReplaceAllString(text, ""), -1) {
		name := strings.ToLower(inHeading.ReplaceAllString(found[1], ""))
		anchors[strings.ReplaceAll(name, " ", "-")] = true
	}
	return anchors
}

// TestExamplesAreOfNoRelease: a page is right for every version, so that only
// the one about upgrading names any.
func TestExamplesAreOfNoRelease(t *testing.T) {
	pages, err := filepath.Glob("../docs/usage/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	release := regexp.MustCompile(`\b20\d\d\.\d+\.\d+\b`)
	for _, page := range append(pages, "../README.md") {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if found := release.Find(content); found != nil && filepath.Base(page) != "upgrade.md" {
			t.Errorf("%s names %s: write YYYY.MM.N, or a pattern of the shell", page, found)
		}
	}
}
