# SPDX-License-Identifier: Apache-2.0
"""Who may open a ucx:// link, and the token that its senders must know. The configuration only names it."""

from __future__ import annotations

import os
from pathlib import Path

from nanet.config.components import Ucx
from nanet.config.engine import EngineConfig
from nanet.config.link import LinkConfig
from nanet.result.keys.base import Config

__all__ = ["native_section"]


def native_section(config: EngineConfig, link: LinkConfig) -> Config:
    """The link's section for the native module, with the token. Raises SetupError."""
    ucx = link.ucx or Ucx()
    _check_account(config, link, ucx)
    _check_shared(config, link, ucx)
    return ucx.model_dump(mode="json") | {"token": f"{_token(link, ucx):x}"}


def _check_account(config: EngineConfig, link: LinkConfig, ucx: Ucx) -> None:
    """Who writes into this process must not get root with it."""
    from nanet._core import SetupError

    if os.geteuid() == 0 and config.run.user is None and not ucx.allow_root:
        raise SetupError(
            f"link '{link.name}' is not opened as root (a sender could use what this process may do) start as another account,"
            " or set run.user, or ucx.allow_root: true"
        )


def _check_shared(config: EngineConfig, link: LinkConfig, ucx: Ucx) -> None:
    from nanet._core import SetupError
    from nanet.rdma import serve

    is_shared = serve.is_loopback(_address(link)) and "tcp" not in ucx.transports.split(",")
    if os.geteuid() == 0 and config.run.user is not None and is_shared:
        raise SetupError(
            f"link '{link.name}' cannot be used with run.user (its shared memory would be root's, and no sender could map it)"
            f" start as {config.run.user} and remove run.user"
        )


def _address(link: LinkConfig) -> str:
    return link.endpoint.partition("://")[2].rpartition(":")[0]


def _token(link: LinkConfig, ucx: Ucx) -> int:
    """What a sender must know; 0: nothing, on loopback only, as with `nanet rdma serve`."""
    from nanet._core import SetupError
    from nanet.rdma import serve, tokens

    token = tokens.read_token(Path(ucx.token_file) if ucx.token_file else None)
    if token == 0 and not serve.is_loopback(_address(link)):
        raise SetupError(
            f"link '{link.name}' does not listen on {link.endpoint} without a token (whoever reaches the port could write into this"
            f" process) set ucx.token_file, or {tokens.VARIABLE} in the environment, or listen on 127.0.0.1"
        )
    return token
