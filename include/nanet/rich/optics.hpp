// SPDX-License-Identifier: Apache-2.0
// NA62's RICH as optics: the radius of a particle's ring, R = f acos(1 / (n beta)), and the masses that go with it.
#pragma once

#include <cmath>
#include <cstdint>

namespace nanet::rich {

inline constexpr double kFocalLengthMm = 17020.0;
inline constexpr double kRefractivityNeon = 62.084e-6;  // n - 1; the RICH has 62.0e-6 to 62.8e-6, this gives the ring below
inline constexpr double kElectronRadiusMm = 189.65;     // ring of a particle at the speed of light

enum class Particle : std::uint8_t { electron = 0, muon = 1, pion = 2, kaon = 3, none = 4 };

constexpr double mass_gev(Particle particle) {
  switch (particle) {
    case Particle::electron: return 0.00051099895;
    case Particle::muon: return 0.1056583755;
    case Particle::pion: return 0.13957039;
    case Particle::kaon: return 0.493677;
    case Particle::none: break;
  }
  return 0.0;
}

// Radius in mm at a momentum in GeV/c; 0 below the Cherenkov threshold and for Particle::none.
inline double ring_radius_mm(Particle particle, double momentum_gev, double refractivity = kRefractivityNeon) {
  if (particle == Particle::none || !(momentum_gev > 0.0)) return 0.0;
  const double mass = mass_gev(particle);
  const double inverse_beta = std::sqrt(1.0 + (mass / momentum_gev) * (mass / momentum_gev));
  const double cosine = inverse_beta / (1.0 + refractivity);
  return cosine < 1.0 ? kFocalLengthMm * std::acos(cosine) : 0.0;
}

}  // namespace nanet::rich
