# SPDX-License-Identifier: Apache-2.0
"""What can be read of a running engine over HTTP: counters for Prometheus, health, channels."""
