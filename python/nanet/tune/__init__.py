# SPDX-License-Identifier: Apache-2.0
"""What a machine should be set to for an engine, and how that is changed and undone."""
