# SPDX-License-Identifier: Apache-2.0
"""Where the labels of a chart go: each near its point, inside the frame, over no other label and no marker."""

from __future__ import annotations

import math
from collections.abc import Iterator

LINE = 15.0  # height of a label
SIDE = 9.0  # from a point to its label
STEP = 0.8 * LINE  # between the places that are tried
NEAR = 9  # steps up and down that are tried beside a point before all of the frame is
FORBIDDEN, CROSSING = 1000.0, 3.5  # costs of a place that covers something, and of one that lies on a thin line

Box = tuple[float, float, float, float]  # left, top, right, bottom


def text_width(label: str) -> float:
    """About how wide a label in bold is, rather too wide."""
    return sum(12.8 if letter in "mwMW%@" else 5.2 if letter in "iljtfrI(),.:'| \u2009" else 9.2 for letter in label)


def overlap(a: Box, b: Box) -> bool:
    """Whether two boxes share more than an edge."""
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


class Labels:
    """The labels of one chart, placed one after the other."""

    def __init__(self, frame: Box) -> None:
        self._frame = frame
        self._taken: list[Box] = []
        self._thin: list[tuple[float, float]] = []

    def keep_off(self, box: Box) -> None:
        """Nothing is placed over this box any more."""
        self._taken.append(box)

    def keep_off_line(self, x0: float, y0: float, x1: float, y1: float) -> None:
        """Labels keep off this line where they can."""
        steps = max(1, int(math.hypot(x1 - x0, y1 - y0) / 6))
        self._thin += [(x0 + (x1 - x0) * k / steps, y0 + (y1 - y0) * k / steps) for k in range(steps + 1)]

    def place(self, x: float, y: float, width: float) -> Box | None:
        """Takes the best place beside a point; None where every one of them covers something."""
        return self._best(self._beside(x, y, width))

    def place_anywhere(self, x: float, y: float, width: float) -> Box:
        """Takes the best place beside a point, or the nearest free one of the frame, or, in a full chart, the nearest of all."""
        found = self.place(x, y, width) or self._best(self._everywhere(x, y, width))
        if found is None:
            found = next(box for box, _ in self._beside(x, y, width))
            self._taken.append(found)
        return found

    def _best(self, places: Iterator[tuple[Box, float]]) -> Box | None:
        least, best = FORBIDDEN, None
        for box, away in places:
            if away >= least:
                continue
            crossed = any(box[0] - 2 < a < box[2] + 2 and box[1] < b < box[3] for a, b in self._thin)
            cost = away + CROSSING * crossed
            if cost < least and self._inside(box) and not any(overlap(box, other) for other in self._taken):
                least, best = cost, box
        if best is not None:
            self._taken.append(best)
        return best

    @staticmethod
    def _beside(x: float, y: float, width: float) -> Iterator[tuple[Box, float]]:
        """Right of a point, left of it, above or below it; and how far away each is, in steps."""
        for away in range(NEAR):
            for order, left in enumerate((x + SIDE, x - SIDE - width, x - width / 2)):
                for sign in (-1, 1):
                    middle = y + sign * away * STEP
                    yield (left, middle - LINE / 2, left + width, middle + LINE / 2), 2.0 * away + 0.1 * order

    def _everywhere(self, x: float, y: float, width: float) -> Iterator[tuple[Box, float]]:
        left, top, right, bottom = self._frame
        for row in range(int((bottom - top - LINE) / STEP) + 1):
            for column in range(int((right - left - width) / STEP) + 1):
                box = (left + column * STEP, top + row * STEP, left + column * STEP + width, top + row * STEP + LINE)
                yield box, math.hypot((box[0] + box[2]) / 2 - x, (box[1] + box[3]) / 2 - y) / STEP

    def _inside(self, box: Box) -> bool:
        left, top, right, bottom = self._frame
        return left <= box[0] and top <= box[1] and box[2] <= right and box[3] <= bottom
