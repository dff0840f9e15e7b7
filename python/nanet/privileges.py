# SPDX-License-Identifier: Apache-2.0
"""Giving up root once everything is set up: what listens to the network needs no privilege to go on."""

from __future__ import annotations

import ctypes
import os
import pwd

from nanet.config_errors import ConfigError

_PR_SET_NO_NEW_PRIVS = 38


def account(name: str) -> pwd.struct_passwd:
    """The account of that name, which is not root's. Raises ConfigError, also where this process could not become it."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise ConfigError([f"run.user: there is no account '{name}' (this machine does not know it) see: getent passwd"]) from None
    if entry.pw_uid == 0:
        raise ConfigError([f"run.user: '{name}' is root (no privilege would be dropped) name another account, such as nobody"])
    if os.geteuid() not in (0, entry.pw_uid):
        raise ConfigError([f"run.user: cannot become '{name}' (not started as root) start as root, or remove run.user"])
    return entry


def become(entry: pwd.struct_passwd) -> None:
    """This process, with all its threads, becomes that account for good; capabilities go with it. Sockets and memory that it has, stay."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid)
        os.setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid)
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot refuse new privileges")
