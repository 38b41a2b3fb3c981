package host

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"opensource.internal/agent/checkin"
)

// maxSmallFile bounds the small text files of /etc and /proc, in bytes.
const maxSmallFile = 64 << 10

// probeMachine finds out what the manager shows about the machine.
func (f *Facts) probeMachine(in Inputs) {
	f.Host.OS = osName(in.Root)
	f.MachineID = machineID(in.Root)
	var err error
	f.Host.UserNamespace, err = inUserNamespace()
	f.warn("look for a user namespace", err)
	f.Host.DiskFreeBytes, err = diskFree(in.StateDir)
	f.warn("ask for free disk space", err)
	f.Hostname, err = hostname()
	f.warn("read the host name", err)
}

// shellUnescape undoes the escapes that os-release(5) allows.
var shellUnescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\$`, `$`, "\\`", "`")

// osName returns PRETTY_NAME of os-release(5), or "Linux" as that page says.
func osName(root string) string {
	for _, path := range []string{"/etc/os-release", "/usr/lib/os-release"} {
		content, _, err := readFile(Path(root, path), maxSmallFile)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(content)) {
			value, found := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME=")
			if !found {
				continue
			}
			return checkin.CleanMessage(shellUnescape.Replace(strings.Trim(value, `'"`)), 128)
		}
	}
	return "Linux"
}

// machineIDSalt is what machine-id(5) asks for: the raw id is confidential and
// is only told after hashing with a key of the program's own.
const machineIDSalt = "opensource-agent machine id, first form"

// machineID returns a hash of /etc/machine-id that is the same at every boot,
// or an empty string on a machine without one.
func machineID(root string) string {
	content, _, err := readFile(Path(root, "/etc/machine-id"), maxSmallFile)
	if err != nil {
		return ""
	}
	raw := strings.TrimSpace(string(content))
	if len(raw) != 32 || strings.Trim(raw, "0123456789abcdef") != "" {
		return "" // such as "uninitialized"
	}
	hash := hmac.New(sha256.New, []byte(raw))
	hash.Write([]byte(machineIDSalt))
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// inUserNamespace is true unless all ids are those of the host
// (user_namespaces(7)).
func inUserNamespace() (bool, error) {
	content, _, err := readFile("/proc/self/uid_map", maxSmallFile)
	if err != nil {
		return false, err
	}
	return strings.Join(strings.Fields(string(content)), " ") != "0 0 4294967295", nil
}

// diskFree returns the bytes that are free to the agent where dir lies, or will
// once it is made.
func diskFree(dir string) (int64, error) {
	var stat unix.Statfs_t
	err := unix.Statfs(dir, &stat)
	if above := filepath.Dir(dir); errors.Is(err, unix.ENOENT) && above != dir {
		return diskFree(above)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", dir, err)
	}
	return int64(stat.Bavail) * stat.Bsize, nil
}

// hostname returns the host's name as it is. The error says that a manager
// will not accept it.
func hostname() (string, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", err
	}
	if folded, err := checkin.ParseDomain(name); err == nil {
		return folded, nil
	}
	_, err = checkin.ParseDomain(name)
	return name, fmt.Errorf("%w; set another with hostnamectl", err)
}
