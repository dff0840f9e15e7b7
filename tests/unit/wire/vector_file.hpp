// SPDX-License-Identifier: Apache-2.0
// Reads the test vectors that the C++ and the Python tests share; the format is given at the head of each file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "nanet/wire/parse_error.hpp"

namespace nanet::wire::test {

struct Vector {
  std::string name;
  std::map<std::string, std::vector<std::string>> values;
  std::vector<std::byte> payload;

  std::uint64_t number(const std::string& key) const { return std::stoull(values.at(key).at(0), nullptr, 0); }
  // Each line of a repeated key as its numbers.
  std::vector<std::vector<std::uint64_t>> lists(const std::string& key) const {
    std::vector<std::vector<std::uint64_t>> lines;
    if (!values.contains(key)) return lines;
    for (const std::string& line : values.at(key)) {
      std::istringstream words(line);
      lines.emplace_back();
      for (std::string word; words >> word;) lines.back().push_back(std::stoull(word, nullptr, 0));
    }
    return lines;
  }
  ParseError expect() const {
    static const std::map<std::string, ParseError> kNames = {{"none", ParseError::none},
                                                             {"bad_length", ParseError::bad_length},
                                                             {"bad_format", ParseError::bad_format},
                                                             {"bad_checksum", ParseError::bad_checksum}};
    return kNames.at(values.at("expect").at(0));
  }
};

inline void append_payload(Vector& vector, const std::string& key, const std::string& value) {
  if (key == "zeros") {
    vector.payload.resize(vector.payload.size() + std::stoul(value));
    return;
  }
  std::istringstream words(value);
  for (std::string word; words >> word;) vector.payload.push_back(static_cast<std::byte>(std::stoul(word, nullptr, 16)));
}

// Throws when the file is missing or has no vector: a test that reads nothing must not pass.
inline std::vector<Vector> read_vectors(const std::string& file_name) {
  const std::string path = NANET_VECTORS "/" + file_name;
  std::ifstream file(path);
  std::vector<Vector> vectors;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '[') {
      vectors.push_back({line.substr(1, line.find(']') - 1), {}, {}});
      continue;
    }
    const auto equals = line.find(" = ");
    if (equals == std::string::npos || vectors.empty())
      throw std::runtime_error("not a 'key = value' line in " + path + ": " + line);
    const std::string key = line.substr(0, equals);
    const std::string value = line.substr(equals + 3);
    if (key == "hex" || key == "zeros") {
      append_payload(vectors.back(), key, value);
    } else {
      vectors.back().values[key].push_back(value);
    }
  }
  if (vectors.empty()) throw std::runtime_error("no vectors in " + path);
  return vectors;
}

}  // namespace nanet::wire::test
