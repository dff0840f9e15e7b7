// SPDX-License-Identifier: Apache-2.0
// Any text as a detector file. What is refused says why; what is accepted, written and read again, is the same.
#include <string_view>

#include "fuzz_common.hpp"
#include "nanet/km3/detector.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace nanet;
  fuzz::Input input(data, size);
  const std::string_view text(reinterpret_cast<const char*>(input.bytes().data()), size);
  const bool refused = fuzz::is_refused([&] {
    const km3::Detector detector = km3::read_detx(text);
    std::size_t pms = 0;
    for (std::uint32_t f = 0; f < detector.floors().size(); ++f) {
      const km3::Floor& floor = detector.floors()[f];
      fuzz::require(floor.first_pm == pms, "floors' PMs follow one another");
      pms += floor.pm_count;
      const km3::FloorCalibration calibration = detector.calibration(f);
      fuzz::require(calibration.pm_count == floor.pm_count, "each PM has its shift");
    }
    fuzz::require(pms == detector.pms().size(), "each PM is of a floor");
    const std::string written = km3::write_detx(detector);
    const bool again_refused = fuzz::is_refused(
        [&] { fuzz::require(km3::write_detx(km3::read_detx(written)) == written, "what was written is read as it was"); });
    fuzz::require(!again_refused, "what was written is accepted");
  });
  static_cast<void>(refused);
  return 0;
}
