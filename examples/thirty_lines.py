# SPDX-License-Identifier: Apache-2.0
"""A trigger of your own in thirty lines: receive hits, find rings, answer. Try it with: nanet emulate tel62 --rate 1e5"""

import nanet
import numpy as np
from nanet import wire

with nanet.open("udp://127.0.0.1:6200", protocol="mgp") as port:
    print("ready", flush=True)
    for completion in port.completions(timeout_s=5.0):  # gives each buffer back before it takes the next
        packets = completion.array(wire.MGP_PACKET)  # no copy: the buffer itself, packet by packet
        events = packets["events"][np.arange(wire.MGP_EVENTS_MAX) < packets["event_count"][:, None]]

        rings = nanet.find_rings(events["hits"], events["hit_count"])  # finder="almagest" for several rings per event
        judged = nanet.judge(rings)  # with the default cuts; put your own decision here

        answers = np.zeros(len(events), wire.PRIMITIVE)
        answers["timestamp"], answers["fine_time"] = events["timestamp"], events["fine_time"]
        answers["id"] = judged["primitive_id"]
        for part in np.split(answers, range(180, len(answers), 180)):
            payload = wire.build_mtp(part, source_id=wire.Source.rich, source_sub_id=0, first_timestamp=int(part["timestamp"][0]))
            port.send("udp://127.0.0.1:6300", payload)
    print(port.counters()["events_received"], "events")
