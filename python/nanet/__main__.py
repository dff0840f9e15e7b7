# SPDX-License-Identifier: Apache-2.0
"""`python -m nanet` is the same as `nanet`."""

from nanet.cli import main

main()
