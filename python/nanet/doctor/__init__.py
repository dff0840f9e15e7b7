# SPDX-License-Identifier: Apache-2.0
"""What of a machine limits rate and latency."""
