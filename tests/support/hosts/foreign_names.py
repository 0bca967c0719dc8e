"""A host with names that are not UTF-8: a cgroup, an interface, a disk and a process."""

from __future__ import annotations

import os

from reveal_collector.readers.netdev import FIELDS
from support.hosts.tree import Tree

NIC = os.fsdecode(b"eth\xff0")
CGROUP = os.fsdecode(b"/jobs/caf\xe9 {x}")
LINE_BREAK = "/jobs/a\u2028b (deleted)"  # other separators and suffixes that mean nothing here
TWIN = "/jobs/caf\\xe9 {x}"  # what the first cgroup looks like
PID = 200


def add_foreign_names(tree: Tree) -> None:
    header = "Inter-|   Receive\n face |bytes    packets\n"
    counts = " ".join(str(number) for number in range(100, 100 + len(FIELDS)))
    tree.write("proc/net/dev", f"{header} {NIC}: {counts}\n".encode(errors="surrogateescape"))
    tree.folder(f"sys/class/net/{NIC}/device")
    for name, text in (("carrier_changes", "2"), ("operstate", "up"), ("mtu", "1500")):
        tree.write(f"sys/class/net/{NIC}/{name}", f"{text}\n")
    tree.write("proc/swaps", b"Filename Type Size Used Priority\n/swap\xfe file 1048572 5 -2\n")
    fields = f"S 1 {PID} 0 0 -1 0 0 0 0 0 10 5 0 0 20 0 2 0 8 0 5 " + "0 " * 28
    tree.write(f"proc/{PID}/stat", f"{PID} (job-".encode() + b"\xe5\x90) " + fields.encode())
    tree.write(f"proc/{PID}/cgroup", b"0::" + os.fsencode(CGROUP) + b"/step\n")
    tree.write("cgroup/cgroup.controllers", "cpu memory\n")
    tree.write("cgroup/cgroup.procs", f"{PID}\n")
    for number, path in enumerate((CGROUP, LINE_BREAK, TWIN)):
        folder = f"cgroup{path}"
        tree.write(f"{folder}/cgroup.controllers", "cpu memory\n")
        tree.write(f"{folder}/cgroup.procs", f"{300 + number}\n")
        tree.write(f"{folder}/cpu.stat", f"usage_usec {1000 + number}\n")
        tree.write(f"{folder}/memory.current", f"{8192 + number}\n")
