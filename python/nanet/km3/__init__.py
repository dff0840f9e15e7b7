# SPDX-License-Identifier: Apache-2.0
"""KM3NeT: for programs, where the PMs are (detector) and which hits are an event (trigger); and the chain between the floors of a tower and what judges
them: slow control, units, runs, alarms, positions (docs/design/km3-server.md).

detector = nanet.km3.detector.Detector.towers(1)      or Detector.read("file.detx")
trigger = nanet.km3.trigger.Trigger(detector, seeds_min=5)
found = trigger.take_slice(0, hits)                   hits: an array of nanet.km3.trigger.HIT
"""
