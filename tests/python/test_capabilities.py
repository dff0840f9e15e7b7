# SPDX-License-Identifier: Apache-2.0
"""What is left of root, in processes of their own: nothing, in no thread, whatever a service manager gave."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys

import pytest

IS_ROOT = os.geteuid() == 0
USER = "nobody" if IS_ROOT else pwd.getpwuid(os.geteuid()).pw_name
SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")

# linux/prctl.h: what a service manager does for AmbientCapabilities= and SecureBits=. CAP_NET_RAW is 13.
GIVEN = """
import ctypes, json, os, pwd, sys, threading
from pathlib import Path

libc = ctypes.CDLL(None, use_errno=True)

def prctl(*words):
    assert libc.prctl(words[0], *map(ctypes.c_ulong, (*words[1:], 0, 0, 0, 0)[:4])) == 0, (words, ctypes.get_errno())

def give_inheritable():
    both = (ctypes.c_uint32 * 6)()
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    assert libc.capget(header, both) == 0
    both[2] = 1 << 13
    assert libc.capset(header, both) == 0
    prctl(47, 2, 13)  # ambient

def shown():
    found = []
    for thread in Path("/proc/self/task").iterdir():
        lines = (thread / "status").read_text().splitlines()
        found.append(dict(line.split(":\\t", 1) for line in lines if line.startswith(("Cap", "NoNew", "Uid", "Gid", "Groups"))))
    return found
"""

BECOME = """
from nanet.machine import privileges

if os.geteuid() == 0:
    if "inheritable" in sys.argv:
        give_inheritable()
    if "securebits" in sys.argv:
        prctl(28, 1 << 2 | 1 << 4)  # no setuid fixup, keep caps
entry = privileges.account(sys.argv[1])
privileges.prepare()
stop = threading.Event()
thread = threading.Thread(target=stop.wait)
thread.start()
privileges.become(entry)
print(json.dumps(shown()))
stop.set()
"""

# As a unit with User= and AmbientCapabilities=: not root, and with a capability all the same.
AMBIENT = """
if os.geteuid() == 0:
    entry = pwd.getpwnam(sys.argv[1])
    prctl(8, 1)  # keep caps
    os.setgroups([])
    os.setresgid(*[entry.pw_gid] * 3)
    os.setresuid(*[entry.pw_uid] * 3)
    both = (ctypes.c_uint32 * 6)(*[1 << 13] * 3)
    assert libc.capset((ctypes.c_uint32 * 2)(0x20080522, 0), both) == 0
    prctl(47, 2, 13)
from nanet.machine import privileges
from nanet.config.errors import ConfigError
try:
    privileges.account(sys.argv[1])
    print("taken")
except ConfigError as error:
    print(error)
"""


def run(script: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", GIVEN + script, USER, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("given", [(), ("inheritable",), ("securebits",), ("inheritable", "securebits")])
def test_no_thread_keeps_a_capability_or_can_have_one_again(given: tuple[str, ...]) -> None:
    threads = json.loads(run(BECOME, *given))
    entry = pwd.getpwnam(USER)
    assert len(threads) == 2
    for thread in threads:
        assert thread["Uid"].split() == [str(entry.pw_uid)] * 4
        assert thread["NoNewPrivs"] == "1"
        for name in SETS if IS_ROOT else set(SETS) - {"CapBnd"}:  # only root may drop what bounds it
            assert int(thread[name], 16) == 0, name


def test_capabilities_of_an_account_that_is_not_root_are_refused() -> None:
    said = run(AMBIENT)
    if IS_ROOT:
        assert said.startswith(f"run.user: '{USER}' would not be all that this is (not started as root, and with capabilities")
        assert len(said.splitlines()) == 1
    else:
        assert said == "taken\n"
