package soak

import (
	"os"
	"path/filepath"
	"strings"
)

// The tools stand before the real programs on the agent's path. They note what
// is validated, and fail or end the agent where a sequence wants that.
const (
	scratch      = "/run/soak"
	toolsDir     = scratch + "/bin"
	validatedDir = scratch + "/validated" // NAME/DIGEST: content that passed its test
	testsLog     = scratch + "/tests"     // a line per test
)

// validator refuses if FLAG.refuse exists, and ends the agent if FLAG.kill does.
const validator = `#!/bin/sh
candidate= test= previous=
for word; do
	case $previous in -c | -C) candidate=$word ;; esac
	case $word in -t | --test) test=yes ;; esac
	previous=$word
done
[ -n "$test" ] || exec PROGRAM "$@"
echo NAME >>` + testsLog + `
if [ -e ` + scratch + `/NAME.kill ]; then
	rm ` + scratch + `/NAME.kill
	kill -9 $PPID
fi
if [ -e ` + scratch + `/NAME.refuse ]; then
	echo "NAME: refused for once" >&2
	exit 1
fi
PROGRAM "$@" || exit
cp "$candidate" "` + validatedDir + `/NAME/$(sha256sum <"$candidate" | cut -d ' ' -f 1)"
`

const journalctl = `#!/bin/sh
for word; do
	case $word in
	--sync) exit 0 ;;
	--unit=*) unit=${word#--unit=} ;;
	--since=*) since=${word#--since=} ;;
	esac
done
exec curl -sS --noproxy '*' "http://` + journalAddress + `/?unit=$unit&since=$since"
`

func writeTools() error {
	tools := map[string]string{"journalctl": journalctl}
	for name, program := range map[string]string{"nginx": nginxProgram, "dnsmasq": dnsmasqProgram} {
		tools[name] = strings.NewReplacer("NAME", name, "PROGRAM", program).Replace(validator)
		if err := os.MkdirAll(filepath.Join(validatedDir, name), 0o755); err != nil {
			return err
		}
	}
	for name, script := range tools {
		if err := os.WriteFile(filepath.Join(toolsDir, name), []byte(script), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// validated reports whether the service's validator has passed this content.
func validated(service, digest string) bool {
	_, err := os.Stat(filepath.Join(validatedDir, service, digest))
	return err == nil
}

// tests returns how often a validator was run.
func tests() int {
	content, _ := os.ReadFile(testsLog)
	return strings.Count(string(content), "\n")
}
