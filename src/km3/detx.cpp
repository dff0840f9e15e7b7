// SPDX-License-Identifier: Apache-2.0
// KM3NeT's detector file. Layout as in the files of km3net-testdata and as km3pipe reads them:
//
//   version 1     head  id, number of modules
//   versions 2-5  head  id and v2 to v5 | valid from, until | UTM ... | number of modules
//   module        id, tower, floor, number of PMs; from version 4 on x y z, four numbers of its rotation and a time offset come after the
//                 floor, and from version 5 on a status too
//   PM            id, x y z [m], direction x y z, time offset [ns]; from version 3 on a status too
#include <charconv>
#include <cstdlib>
#include <optional>
#include <system_error>

#include "nanet/km3/detector.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::km3 {
namespace {

constexpr std::string_view kBlanks = " \t\r";

// The lines that are neither empty nor a comment, and the words of each.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}

  bool next() {
    while (!text_.empty()) {
      const std::size_t end = text_.find('\n');
      line_ = text_.substr(0, end);
      text_ = end == std::string_view::npos ? std::string_view{} : text_.substr(end + 1);
      ++number_;
      const std::size_t first = line_.find_first_not_of(kBlanks);
      if (first == std::string_view::npos || line_[first] == '#') continue;
      line_ = line_.substr(first);
      left_ = line_;
      return true;
    }
    ++number_;
    return false;
  }

  void need(const std::string& what) {
    if (!next()) fail("the file ends", what + " is missing");
  }

  std::string_view line() const { return line_.substr(0, line_.find_last_not_of(kBlanks) + 1); }

  bool at_end() const { return left_.find_first_not_of(kBlanks) == std::string_view::npos; }

  std::string_view word(const char* what) {
    const std::size_t first = left_.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) fail("a line is too short", std::string(what).append(" is missing"));
    const std::size_t end = left_.find_first_of(kBlanks, first);
    const std::string_view found = left_.substr(first, end == std::string_view::npos ? end : end - first);
    left_ = end == std::string_view::npos ? std::string_view{} : left_.substr(end);
    return found;
  }

  template <class Number>
  Number number(const char* what) {
    return number_of<Number>(word(what), what);
  }

  template <class Number>
  Number number_of(std::string_view text, const char* what) const {
    const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
    Number value{};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size())
      fail("'" + std::string(text) + "'", std::string(what) + " is a number");
    return value;
  }

  Vector vector(const char* what) {
    Vector v;
    v.x = number<double>(what);
    v.y = number<double>(what);
    v.z = number<double>(what);
    return v;
  }

  void end_of_line() {
    if (!at_end())
      fail("a line is too long", "nothing comes after '" + std::string(line_.substr(0, line_.size() - left_.size())) + "'");
  }

  [[noreturn]] void fail(const std::string& problem, const std::string& why) const {
    throw SetupError("detector file, line " + std::to_string(number_) + ": " + problem, why, "compare with the .detx format");
  }

 private:
  std::string_view text_;
  std::string_view line_;
  std::string_view left_;
  std::size_t number_ = 0;
};

constexpr int kVersionMax = 5;

int read_head(Lines& lines, DetectorHead& head, std::int64_t& modules) {
  lines.need("the head");
  head.id = lines.number<std::int64_t>("id of the detector");
  const std::string_view second = lines.word("version, or number of modules");
  lines.end_of_line();
  if (second.front() != 'v' && second.front() != 'V') {
    modules = lines.number_of<std::int64_t>(second, "number of modules");
    return 1;
  }
  const int version = lines.number_of<int>(second.substr(1), "version");
  if (version < 2 || version > kVersionMax) lines.fail("version " + std::to_string(version), "versions 1 to 5 are known");
  lines.need("the time for which the file is valid");
  head.valid_from_s = lines.number<double>("valid from");
  head.valid_until_s = lines.number<double>("valid until");
  lines.need("the place on Earth");
  if (!lines.line().starts_with("UTM")) lines.fail("'" + std::string(lines.line()) + "'", "a line with UTM comes here");
  head.place_on_earth = lines.line();
  lines.need("the number of modules");
  modules = lines.number<std::int64_t>("number of modules");
  lines.end_of_line();
  return version;
}

Floor read_module(Lines& lines, int version) {
  Floor floor;
  floor.id = lines.number<std::int64_t>("id of a module");
  floor.tower = lines.number<std::int32_t>("tower");
  floor.number = lines.number<std::int32_t>("floor");
  if (version >= 4) {  // its own position and rotation: the PMs have theirs
    for (int k = 0; k < 8; ++k) lines.number<double>("position, rotation or time of a module");
  }
  if (version >= 5) lines.number<std::int64_t>("status of a module");
  floor.pm_count = lines.number<std::uint32_t>("number of PMs");
  lines.end_of_line();
  return floor;
}

Pm read_pm(Lines& lines, int version) {
  Pm pm;
  pm.id = lines.number<std::int64_t>("id of a PM");
  pm.position_m = lines.vector("position of a PM");
  pm.direction = lines.vector("direction of a PM");
  pm.time_offset_ns = lines.number<double>("time offset of a PM");
  if (version >= 3) pm.status = lines.number<std::int64_t>("status of a PM");
  lines.end_of_line();
  return pm;
}

void append(std::string& text, double value) {
  char digits[32];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
  text.append(digits, error == std::errc{} ? end : digits);
}

void append(std::string& text, const Vector& v) {
  for (const double value : {v.x, v.y, v.z}) {
    text += ' ';
    append(text, value);
  }
}

}  // namespace

Detector read_detx(std::string_view text) {
  Lines lines(text);
  DetectorHead head;
  std::int64_t modules = 0;
  const int version = read_head(lines, head, modules);
  std::vector<Floor> floors;
  std::vector<Pm> pms;
  std::int32_t next_number = 1;  // for files whose floors are all -1
  while (lines.next()) {
    if (std::int64_t(floors.size()) >= modules)
      lines.fail("more than " + std::to_string(modules) + " modules", "the head says so many");
    Floor floor = read_module(lines, version);
    if (floors.size() >= kFloorsMax || pms.size() + floor.pm_count > kPmsMax)
      lines.fail("too many modules or PMs", "see kFloorsMax, kPmsMax");
    next_number = !floors.empty() && floors.back().tower == floor.tower ? next_number + 1 : 1;
    if (floor.number == -1) floor.number = next_number;
    for (std::uint32_t k = 0; k < floor.pm_count; ++k) {
      lines.need("a PM");
      pms.push_back(read_pm(lines, version));
    }
    floors.push_back(floor);
  }
  if (std::int64_t(floors.size()) != modules) {
    lines.fail(std::to_string(floors.size()) + " modules", "the head says " + std::to_string(modules));
  }
  return Detector(std::move(head), std::move(floors), std::move(pms));
}

std::string write_detx(const Detector& detector) {
  std::string text = std::to_string(detector.head().id) + " v3\n";
  append(text, detector.head().valid_from_s);
  text += ' ';
  append(text, detector.head().valid_until_s);
  text += '\n' + detector.head().place_on_earth + '\n' + std::to_string(detector.floors().size()) + '\n';
  for (const Floor& floor : detector.floors()) {
    text += std::to_string(floor.id) + ' ' + std::to_string(floor.tower) + ' ' + std::to_string(floor.number) + ' ' +
            std::to_string(floor.pm_count) + '\n';
    for (std::uint32_t k = 0; k < floor.pm_count; ++k) {
      const Pm& pm = detector.pms()[floor.first_pm + k];
      text += ' ' + std::to_string(pm.id);
      append(text, pm.position_m);
      append(text, pm.direction);
      text += ' ';
      append(text, pm.time_offset_ns);
      text += ' ' + std::to_string(pm.status) + '\n';
    }
  }
  return text;
}

}  // namespace nanet::km3
