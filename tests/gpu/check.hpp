// SPDX-License-Identifier: Apache-2.0
// The frame of the tests on a GPU: TEST, EXPECT_* and ASSERT_* with the meaning that GoogleTest gives them, for machines that have none.
//
//   TEST(RingFinder, finds_the_same_bits) { EXPECT_EQ(found, expected) << "event " << e; }
//
// EXPECT_* goes on after a failure, ASSERT_* returns from the function, which must return void. A test that throws has failed. Of one test the
// first kFailuresShown failures are printed. Integers of different types and signs are compared by value.
// Thread rules: EXPECT_* may be used from any thread that ends before the test does.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <iomanip>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace nanet::check {

inline constexpr unsigned kFailuresShown = 10;

// True under compute-sanitizer (scripts/test_gpu.sh says so): it is 10 to 1000 times slower, so use fewer events.
bool under_sanitizer();

// Says that the running test needs more than this machine has: it counts as not run, neither as passed nor as failed. reason: "(why) suggestion".
void not_run(const std::string& reason);

// Registers a test; made by TEST.
struct Registration {
  Registration(const char* group, const char* name, void (*run)());
};

// A check that failed; counted and printed, with all that was streamed into it, when it goes out of scope.
class Failure {
 public:
  Failure(const char* file, int line, const std::string& problem) : file_(file), line_(line) { text_ << problem; }
  ~Failure();
  Failure(const Failure&) = delete;
  Failure& operator=(const Failure&) = delete;

  template <class T>
  Failure& operator<<(const T& value) {
    if (!std::exchange(streamed_, true)) text_ << ": ";
    text_ << value;
    return *this;
  }

 private:
  const char* file_;
  int line_;
  bool streamed_ = false;
  std::ostringstream text_;
};

// Makes `return Return{} & Failure(...) << ...` a return of nothing.
struct Return {
  void operator&(const Failure&) const {}
};

// ---- what the macros call: each gives an empty text when all is well, else what is wrong.

template <class T>
std::string say(const T& value) {
  std::ostringstream text;
  if constexpr (std::is_same_v<T, bool>) {
    text << (value ? "true" : "false");
  } else if constexpr (std::is_enum_v<T>) {
    text << +static_cast<std::underlying_type_t<T>>(value);
  } else if constexpr (std::is_integral_v<T>) {
    text << +value;
  } else if constexpr (std::is_floating_point_v<T>) {
    text << std::setprecision(17) << value;
  } else if constexpr (std::is_convertible_v<T, std::string_view>) {
    text << '"' << std::string_view(value) << '"';
  } else if constexpr (requires { text << value; }) {
    text << value;
  } else {
    text << sizeof(T) << " bytes";
  }
  return text.str();
}

template <class T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;

template <class A, class B>
bool equal(const A& a, const B& b) {
  if constexpr (Integer<A> && Integer<B>) {
    return std::cmp_equal(a, b);
  } else {
    return a == b;
  }
}

template <class A, class B>
bool less(const A& a, const B& b) {
  if constexpr (Integer<A> && Integer<B>) {
    return std::cmp_less(a, b);
  } else {
    return a < b;
  }
}

template <class A, class B>
std::string differ(const char* what, const A& a, const B& b) {
  return std::string(what) + " does not hold: " + say(a) + " and " + say(b);
}

inline std::string near(const char* what, double a, double b, double tolerance) {
  const bool well = std::abs(a - b) <= tolerance;  // false for a NaN
  return well ? std::string() : differ(what, a, b);
}

enum class Thrown { nothing, wanted, other };

template <class Exception, class Call>
std::string throws(const char* what, Call&& call) {
  Thrown thrown = Thrown::nothing;
  try {
    call();
  } catch (const Exception&) {
    thrown = Thrown::wanted;
  } catch (...) {
    thrown = Thrown::other;
  }
  if (thrown == Thrown::wanted) return {};
  return std::string(what) + (thrown == Thrown::nothing ? " threw nothing" : " threw something else");
}

}  // namespace nanet::check

#define TEST(group, name)                                                                                              \
  static void check_##group##_##name();                                                                                \
  static const ::nanet::check::Registration check_registered_##group##_##name(#group, #name, &check_##group##_##name); \
  static void check_##group##_##name()

// The switch keeps an else after the macro from becoming its own.
#define NANET_CHECK(problem, act)                                             \
  switch (0)                                                                  \
  case 0:                                                                     \
  default:                                                                    \
    if (const std::string check_problem = (problem); check_problem.empty()) { \
    } else                                                                    \
      act ::nanet::check::Failure(__FILE__, __LINE__, check_problem)
#define NANET_EXPECT(problem) NANET_CHECK(problem, )
#define NANET_ASSERT(problem) NANET_CHECK(problem, return ::nanet::check::Return{}&)

#define NANET_HOLDS(a, b, op, condition) \
  [](const auto& x, const auto& y) { return (condition) ? std::string() : ::nanet::check::differ(#a " " op " " #b, x, y); }(a, b)
#define NANET_EQ(a, b) NANET_HOLDS(a, b, "==", ::nanet::check::equal(x, y))
#define NANET_NE(a, b) NANET_HOLDS(a, b, "!=", !::nanet::check::equal(x, y))
#define NANET_LT(a, b) NANET_HOLDS(a, b, "<", ::nanet::check::less(x, y))
#define NANET_LE(a, b) NANET_HOLDS(a, b, "<=", ::nanet::check::less(x, y) || ::nanet::check::equal(x, y))
#define NANET_GT(a, b) NANET_HOLDS(a, b, ">", ::nanet::check::less(y, x))
#define NANET_GE(a, b) NANET_HOLDS(a, b, ">=", ::nanet::check::less(y, x) || ::nanet::check::equal(x, y))
#define NANET_TRUE(a) (static_cast<bool>(a) ? std::string() : std::string(#a " is false"))
#define NANET_FALSE(a) (static_cast<bool>(a) ? std::string(#a " is true") : std::string())
#define NANET_NEAR(a, b, tolerance) ::nanet::check::near(#a " near " #b, a, b, tolerance)
#define NANET_THROWS(statement, exception) ::nanet::check::throws<exception>(#statement, [&] { statement; })

#define EXPECT_EQ(a, b) NANET_EXPECT(NANET_EQ(a, b))
#define EXPECT_NE(a, b) NANET_EXPECT(NANET_NE(a, b))
#define EXPECT_LT(a, b) NANET_EXPECT(NANET_LT(a, b))
#define EXPECT_LE(a, b) NANET_EXPECT(NANET_LE(a, b))
#define EXPECT_GT(a, b) NANET_EXPECT(NANET_GT(a, b))
#define EXPECT_GE(a, b) NANET_EXPECT(NANET_GE(a, b))
#define EXPECT_TRUE(a) NANET_EXPECT(NANET_TRUE(a))
#define EXPECT_FALSE(a) NANET_EXPECT(NANET_FALSE(a))
#define EXPECT_NEAR(a, b, tolerance) NANET_EXPECT(NANET_NEAR(a, b, tolerance))
#define EXPECT_THROW(statement, exception) NANET_EXPECT(NANET_THROWS(statement, exception))

#define ASSERT_EQ(a, b) NANET_ASSERT(NANET_EQ(a, b))
#define ASSERT_NE(a, b) NANET_ASSERT(NANET_NE(a, b))
#define ASSERT_LT(a, b) NANET_ASSERT(NANET_LT(a, b))
#define ASSERT_LE(a, b) NANET_ASSERT(NANET_LE(a, b))
#define ASSERT_GT(a, b) NANET_ASSERT(NANET_GT(a, b))
#define ASSERT_GE(a, b) NANET_ASSERT(NANET_GE(a, b))
#define ASSERT_TRUE(a) NANET_ASSERT(NANET_TRUE(a))
#define ASSERT_FALSE(a) NANET_ASSERT(NANET_FALSE(a))
#define ASSERT_NEAR(a, b, tolerance) NANET_ASSERT(NANET_NEAR(a, b, tolerance))
#define ASSERT_THROW(statement, exception) NANET_ASSERT(NANET_THROWS(statement, exception))
