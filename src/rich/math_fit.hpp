// SPDX-License-Identifier: Apache-2.0
// The MATH ring fit: the circle through an event's hits in closed form, for one event or, vectorised, for many.
//
// Method: J. F. Crawford, NIM 211 (1983) 223: minimise the sum of (x^2 + y^2 - 2 a x - 2 b y - c)^2, which is linear in a, b and c. Here it is
// written with the determinant of the centred second moments and in lattice integers (ring_sums.hpp), so that everything up to the first
// division is an exact integer. The scalar function, the Highway batch and a GPU kernel therefore give the same bits, provided that
// multiplications and additions are not contracted (-ffp-contract=off, nvcc -fmad=false).
//
// The fit takes every hit as good: one noise hit spoils it. Cut on rms_mm (decision.hpp).
// Thread rules: all functions are pure; no allocation, no exception.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "nanet/host_device.hpp"
#include "nanet/rich/ring.hpp"
#include "rich/ring_sums.hpp"

namespace nanet::rich {

// The ring of the sums of at most kMaxHits hits; never sets a truncated status.
NANET_HD inline Ring solve_ring(const RingSums& sums);

// The ring of one event.
Ring fit_ring(event::Event event);

// rings[k] becomes the ring of events[k], the same bits as fit_ring. `rings` must be at least as long as `events`.
void fit_rings(std::span<const event::Event> events, std::span<Ring> rings);

// Name of the instruction set that fit_rings uses on this machine, for example "AVX3".
const char* fit_rings_target();

// ---------------------------------------------------------------------------------------------------------------------------------

// In units of the lattice, with moments N sum(ab) - sum(a) sum(b) about the mean (integers, at most 6.8e15 < 2^53 in every product and
// difference, hence exact in double), z ~ 2 a i + 2 b' j + c has the solution
//   2 a = (P C - Q B) / D,  2 b' = (A Q - B P) / D,  D = A C - B^2  with A = ii, B = ij, C = jj, P = zi, Q = zj
// and with y = sqrt(3) j the centre is (a, b' / 3) in units of (i, j).
NANET_HD inline Ring solve_ring(const RingSums& sums) {
  const std::int32_t hits = hit_count(sums);
  const double n = hits;
  const double si = sum_i(sums);
  const double sj = sums.j;
  const double sii = sums.ii;
  const double sjj = sums.jj;
  const double sz = sii + 3.0 * sjj;
  const double a = n * sii - si * si;
  const double b = n * sums.ij - si * sj;
  const double c = n * sjj - sj * sj;
  const double p = n * sums.zi - sz * si;
  const double q = n * sums.zj - sz * sj;
  const double w = n * sums.zz - sz * sz;
  const double det = a * c - b * b;

  Ring ring;
  ring.hits = static_cast<std::uint16_t>(hits);
  if (!(det > 0.0)) return ring;  // exact: 0 for fewer than three different PMs and for PMs on one line

  const double inverse_det = 1.0 / det;
  const double inverse_n = 1.0 / n;
  const double two_a = (p * c - q * b) * inverse_det;
  const double two_b = (a * q - b * p) * inverse_det;
  const double center_i = 0.5 * two_a;
  const double center_j = (1.0 / 6.0) * two_b;
  const double di = center_i - si * inverse_n;
  const double dj = center_j - sj * inverse_n;
  const double inverse_n2 = inverse_n * inverse_n;
  const double radius2 = (di * di + 3.0 * (dj * dj)) + (a + 3.0 * c) * inverse_n2;
  const double residual = (w - (two_a * p + two_b * q)) * inverse_n2;  // mean of (d^2 - R^2)^2
  const double residual2 = residual > 0.0 ? residual : 0.0;            // rounding can leave it below 0

  ring.x_mm = static_cast<float>(9.0 * center_i);
  ring.y_mm = static_cast<float>(15.588457268119894 * center_j);
  ring.radius_mm = static_cast<float>(9.0 * std::sqrt(radius2));
  ring.rms_mm = static_cast<float>(4.5 * std::sqrt(residual2 / radius2));
  ring.status = RingStatus::ring;
  return ring;
}

}  // namespace nanet::rich
