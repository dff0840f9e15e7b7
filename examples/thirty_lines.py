# SPDX-License-Identifier: Apache-2.0
"""A trigger of your own in thirty lines: receive hits, fit rings, answer. Try it with: nanet emulate tel62 --rate 1e5"""

import nanet
import numpy as np
from nanet import wire

with nanet.open("udp://127.0.0.1:6200", protocol="mgp") as port:
    print("ready", flush=True)
    for completion in port.completions(timeout_s=5.0):  # gives each buffer back before it takes the next
        packets = completion.array(wire.MGP_PACKET)  # no copy: the buffer itself, packet by packet
        events = packets["events"][np.arange(wire.MGP_EVENTS_MAX) < packets["event_count"][:, None]]
        rings = nanet.fit_rings(np.ascontiguousarray(events["hits"]), events["hit_count"].astype(np.uint32))

        hits, radius = rings["hits"].astype(np.float32), rings["radius_mm"]
        good = (rings["status"] & 1 == 1) & (hits >= 4) & (radius >= 70) & (radius <= 210)
        good &= rings["rms_mm"] ** 2 * hits <= np.float32(100) * (hits - 3)  # 10 mm a hit
        meaning = np.zeros(len(events), wire.PRIMITIVE_MEANING)
        meaning["multiplicity"] = np.minimum(rings["hits"], 63)
        meaning["ring_found"] = meaning["ring_count"] = good
        meaning["electron_like"] = good & (np.abs(radius - np.float32(189.65)) <= 6)
        meaning["radius_class"] = np.where(good, np.minimum(radius / 16, 15), 0)

        answers = np.zeros(len(events), wire.PRIMITIVE)
        answers["timestamp"], answers["fine_time"] = events["timestamp"], events["fine_time"]
        answers["id"] = wire.encode_primitive_ids(meaning)
        for part in np.split(answers, range(180, len(answers), 180)):
            payload = wire.build_mtp(part, source_id=wire.Source.rich, source_sub_id=0, first_timestamp=int(part["timestamp"][0]))
            port.send("udp://127.0.0.1:6300", payload)
    print(port.counters()["events_received"], "events")
