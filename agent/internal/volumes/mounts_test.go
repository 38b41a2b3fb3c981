package volumes

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func TestMountsAreJudgedByTheirEntry(t *testing.T) {
	table := mountTable{root: 1, byID: parseMounts([]byte(strings.Join([]string{
		`1 0 254:0 / / rw,relatime - ext4 /dev/vda rw`,
		`2 1 254:0 /srv /mnt/store rw - ext4 /dev/vda rw`,
		`3 1 0:50 / /mnt/vol\040a rw shared:7 master:1 - ext4 /dev/vdb rw`,
		`4 1 0:51 / /mnt/ro ro - ext4 /dev/vdc rw`,
		`5 1 0:52 / /mnt/superro rw - ext4 /dev/vdd ro,errors=continue`,
		`6 1 0:53 / /mnt/rooted rw,rootcontext=x - ext4 /dev/vde rw,prjquota,noro`,
		`7 1 0:54 / /mnt/lxcfs rw - fuse.lxcfs lxcfs rw`,
		`8 1 0:55 / /mnt/auto rw - autofs systemd-1 rw,fd=1`,
		`9 1 0:56 / /mnt/zfs rw - zfs tank/volumes rw,xattr,posixacl`,
		`10 1 0:57 / /mnt/nfs rw - nfs4 server:/export rw,vers=4.2`,
		`garbage`,
		`11 1 0:58 / /mnt/twice rw - ext4 /dev/vdf rw`,
		`11 1 0:58 / /mnt/forged rw - ext4 /dev/vdf rw`,
		`12 1 0:59 / /mnt/short rw`,
		`x 1 0:60 / /mnt/noid rw - ext4 /dev/vdg rw`,
		``,
	}, "\n")))}
	for id, want := range map[int]string{
		1: "root filesystem", 2: "", 3: "", 4: "read-only", 5: "read-only", 6: "", 7: "pseudo", 8: "pseudo", 9: "", 10: "",
		11: "not in /proc/self/mountinfo", 12: "not in /proc/self/mountinfo", 0: "not in /proc/self/mountinfo", 99: "not in /proc/self/mountinfo",
	} {
		err := table.checkID(id, "/p", "/p/v")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("mount %d: %v, want %q", id, err, want)
		}
	}
	for path, want := range map[string]string{
		"/mnt/vol a/data": "/mnt/vol a", "/mnt/vol a": "/mnt/vol a", "/mnt/vol ab": "/", "/mnt/nfs/x": "/mnt/nfs", "/": "/",
	} {
		if got := table.pointOf(path); got != want {
			t.Errorf("%q lies on %q, want %q", path, got, want)
		}
	}
}

func FuzzMounts(f *testing.F) {
	if own, err := os.ReadFile("/proc/self/mountinfo"); err == nil {
		f.Add(own)
	}
	f.Add([]byte("3 1 0:50 / /mnt/vol\\040a rw shared:7 - ext4 /dev/vdb rw\n"))
	f.Add([]byte("3 1 0:50 - - - - - -\n- - -"))
	f.Fuzz(func(t *testing.T, content []byte) {
		table := mountTable{root: 1, byID: parseMounts(content)}
		point := table.pointOf("/mnt/vol a/data")
		if point != "/" && point != "/mnt" && point != "/mnt/vol a" && point != "/mnt/vol a/data" {
			t.Fatalf("mount point %q", point)
		}
		for id := range table.byID {
			if table.checkID(id, "/p", "/p/v") == nil && !bytes.Contains(content, []byte(" - ")) {
				t.Fatalf("mount %d passed without a whole line", id)
			}
		}
		if table.checkID(1, "/p", "/p/v") == nil {
			t.Fatal("the root filesystem passed")
		}
	})
}

func TestIDMaps(t *testing.T) {
	for content, want := range map[string]bool{
		"         0          0 4294967295\n":              true,
		"         0     100000      65536\n":              false,
		"0 100000 1000\n1000 1000 1\n1001 101001 64535\n": false,
		"": false,
	} {
		m, err := parseIDMap(content)
		if err != nil || m.whole() != want {
			t.Errorf("%q: %v, %v", content, m.whole(), err)
		}
	}
	for _, content := range []string{"0 0", "a b c", "0 0 4294967296", "-1 0 1", "0 0 1 1"} {
		if _, err := parseIDMap(content); err == nil {
			t.Errorf("%q was read", content)
		}
	}
	m, _ := parseIDMap("0 100000 1000\n1000 1000 1\n")
	for inside, want := range map[int64]int64{0: 100000, 999: 100999, 1000: 1000} {
		if got, mapped := m.outside(inside); !mapped || got != want {
			t.Errorf("%d is %d outside, want %d", inside, got, want)
		}
	}
	if m.has(1001) || m.has(1<<32-2) {
		t.Error("an unmapped id was found")
	}
}

func TestNoteSaysWhatTheIDMapMakesOfRoot(t *testing.T) {
	ids := idMaps{uid: idMap{{0, 100000, 65536}}, gid: idMap{{0, 100000, 65536}}}
	root := owner{0, 0, 0o755}
	if note := ids.outsideNote(root, 100000, 100000); note != "" {
		t.Errorf("right owner outside, but: %s", note)
	}
	if note := ids.outsideNote(root, 200000, 100000); !strings.Contains(note, "100000:100000 outside") {
		t.Errorf("wrong owner outside: %q", note)
	}
}
