# SPDX-License-Identifier: Apache-2.0
"""What runs in this process or in one of its own: an engine, an emulator, an L0 trigger processor, a replay."""
