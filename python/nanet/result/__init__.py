# SPDX-License-Identifier: Apache-2.0
"""What a run leaves: books, latencies, hops, channels, and the files they are written to."""
