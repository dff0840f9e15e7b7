// SPDX-License-Identifier: Apache-2.0
// JSON on standard output, written as it comes: it sets the commas, the caller closes what it opens.
//
// Names and texts are printed as they are: they hold no quote and no backslash.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace nanet::bench {

class JsonWriter {
 public:
  JsonWriter& open(char bracket) {  // '{' or '['
    comma();
    std::putchar(bracket);
    first_ = true;
    return *this;
  }
  JsonWriter& close(char bracket) {
    std::putchar(bracket);
    first_ = false;
    return *this;
  }
  JsonWriter& key(std::string_view name) {
    text(name);
    std::fputs(": ", stdout);
    first_ = true;
    return *this;
  }
  JsonWriter& text(std::string_view value) {
    comma();
    std::printf("\"%.*s\"", static_cast<int>(value.size()), value.data());
    return *this;
  }
  JsonWriter& value(std::integral auto number) {
    comma();
    std::fputs(std::to_string(number).c_str(), stdout);
    return *this;
  }
  JsonWriter& value(double number) {
    comma();
    std::printf("%.9g", number);
    return *this;
  }
  JsonWriter& boolean(bool value) { return word(value ? "true" : "false"); }
  JsonWriter& null() { return word("null"); }
  template <class Value>
  JsonWriter& pair(std::string_view name, const Value& value_of) {
    return key(name).value(value_of);
  }

 private:
  JsonWriter& word(const char* value) {
    comma();
    std::fputs(value, stdout);
    return *this;
  }
  void comma() {
    if (!first_) std::fputs(", ", stdout);
    first_ = false;
  }
  bool first_ = true;
};

}  // namespace nanet::bench
