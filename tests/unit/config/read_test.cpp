// SPDX-License-Identifier: Apache-2.0
#include "nanet/config/read.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nanet/config/describe.hpp"

namespace nanet::config {

enum class Colour : std::uint8_t { red, green };

constexpr auto choices(Colour) { return std::array{Choice{"red", Colour::red}, Choice{"green", Colour::green}}; }

namespace {

struct Wheel {
  static constexpr Component component{"Wheel", "What it rolls on."};
  double radius_mm = 300;
  std::uint8_t spokes = 20;

  template <class Visit>
  void visit(Visit&& v) {
    v("radius_mm", radius_mm, {.help = "Radius", .unit = "mm", .most = 1000, .above = 0});
    v("spokes", spokes, {.help = "Spokes", .multiple_of = 2});
  }
};

struct Bicycle {
  static constexpr Component component{"Bicycle", "A vehicle."};
  std::string name;
  Colour colour = Colour::green;
  bool bell = true;
  std::uint32_t gears = 0;
  std::optional<std::int64_t> owner;
  std::vector<Wheel> wheels;
  std::uint32_t seats = 1;
  std::array<double, 2> cranks_mm{170, 165};
  std::vector<Wheel> spare_wheels{{.radius_mm = 250}};
  std::map<std::string, double> tools = {{"wrench", 15}};
  int not_said = 7;

  template <class Visit>
  void visit(Visit&& v) {
    v("name", name, {.help = "Its name", .length_least = 1, .required = true});
    v("colour", colour, {.help = "Its colour"});
    v("bell", bell, {.help = "Whether it rings"});
    v("gears", gears, {.help = "Gears; null: none", .least = 3, .most = 30, .nullable = true});
    v("owner", owner, {.help = "Number of the owner", .least = 1});
    v("wheels", wheels, {.help = "Its wheels", .length_most = 2});
    v("seats", seats, {.help = "Seats", .one_of = {1, 2}});
    v("cranks_mm", cranks_mm, {.help = "Cranks, left and right", .unit = "mm", .least = 100});
    v("spare_wheels", spare_wheels, {.help = "More wheels"});
    v("tools", tools, {.help = "Sizes of its tools", .unit = "mm", .above = 0, .length_most = 3});
  }

  std::optional<Problem> check() const {
    if (wheels.size() != 1) return std::nullopt;
    return Problem{"wheels", "there is one wheel", "that is a unicycle", "add another"};
  }
};

Value text(const char* what) { return {std::string(what)}; }
Value whole(std::int64_t number) { return {number}; }

std::string refusal(Value::Map keys) {
  try {
    read<Bicycle>(Value(std::move(keys)), "shed");
  } catch (const SetupError& error) {
    return error.what();
  }
  return "read";
}

TEST(Read, TakesWhatIsGivenAndKeepsTheRest) {
  const Value wheel(Value::Map{{"radius_mm", whole(250)}});
  const auto read_whole = read<Bicycle>(Value::Map{{"name", text("Rosie")},
                                                   {"colour", text("red")},
                                                   {"gears", whole(21)},
                                                   {"owner", Value()},
                                                   {"wheels", Value(Value::List{wheel, wheel})},
                                                   {"seats", whole(2)},
                                                   {"cranks_mm", Value(Value::List{whole(175), Value(172.5)})},
                                                   {"spare_wheels", Value(Value::List{})},
                                                   {"tools", Value(Value::Map{{"key", whole(6)}})}});
  EXPECT_EQ(read_whole.name, "Rosie");
  EXPECT_EQ(read_whole.colour, Colour::red);
  EXPECT_TRUE(read_whole.bell);
  EXPECT_EQ(read_whole.gears, 21u);
  EXPECT_FALSE(read_whole.owner);
  ASSERT_EQ(read_whole.wheels.size(), 2u);
  EXPECT_EQ(read_whole.wheels[1].radius_mm, 250);
  EXPECT_EQ(read_whole.wheels[1].spokes, 20);
  EXPECT_EQ(read_whole.seats, 2u);
  EXPECT_EQ(read_whole.cranks_mm, (std::array{175.0, 172.5}));
  EXPECT_TRUE(read_whole.spare_wheels.empty());
  EXPECT_EQ(read_whole.tools, (std::map<std::string, double>{{"key", 6}}));
}

TEST(Read, NullIsTheEmptyValueWhereItMayBe) {
  EXPECT_EQ(read<Bicycle>(Value::Map{{"name", text("a")}, {"gears", Value()}}).gears, 0u);
  EXPECT_EQ(refusal({{"name", Value()}}), "cannot use shed.name (it is not a text) it means: Its name");
}

TEST(Read, NamesTheKeyThatItRefuses) {
  EXPECT_EQ(refusal({}), "cannot use shed.name (it is missing and has no default) it means: Its name");
  const auto with = [](const char* key, Value value) { return refusal({{"name", text("a")}, {key, std::move(value)}}); };
  EXPECT_EQ(with("bel", Value(true)), "cannot use shed.bel (there is no such key) it means: A vehicle.");
  EXPECT_EQ(with("not_said", whole(1)), "cannot use shed.not_said (there is no such key) it means: A vehicle.");
  EXPECT_EQ(with("colour", text("blue")), "cannot use shed.colour (it is none of the choices) it means: Its colour");
  EXPECT_EQ(with("bell", whole(1)), "cannot use shed.bell (it is neither true nor false) it means: Whether it rings");
  EXPECT_EQ(with("gears", Value(3.5)), "cannot use shed.gears (it is not a whole number) it means: Gears; null: none");
  EXPECT_EQ(with("gears", whole(-1)), "cannot use shed.gears (-1 is out of range) it means: Gears; null: none");
  EXPECT_EQ(with("gears", whole(2)), "cannot use shed.gears (2 must be at least 3) it means: Gears; null: none");
  EXPECT_EQ(with("owner", whole(0)), "cannot use shed.owner (0 must be at least 1) it means: Number of the owner");
  EXPECT_EQ(with("wheels", whole(0)), "cannot use shed.wheels (it is not a list) it means: Its wheels");
  const Value odd(Value::Map{{"spokes", whole(19)}});
  EXPECT_EQ(with("wheels", Value(Value::List{Value(Value::Map{}), odd})),
            "cannot use shed.wheels[1].spokes (19 must be a multiple of 2) it means: Spokes");
  const Value flat(Value::Map{{"radius_mm", whole(0)}});
  EXPECT_EQ(with("wheels", Value(Value::List{flat})), "cannot use shed.wheels[0].radius_mm (0 must be above 0) it means: Radius");
  EXPECT_EQ(with("wheels", Value(Value::List(3, Value(Value::Map{})))),
            "cannot use shed.wheels (its length must be at most 2) it means: Its wheels");
  EXPECT_EQ(with("seats", whole(3)), "cannot use shed.seats (3 must be one of 1, 2) it means: Seats");
  EXPECT_EQ(with("cranks_mm", Value(Value::List(3, whole(170)))),
            "cannot use shed.cranks_mm (its length must be 2) it means: Cranks, left and right");
  EXPECT_EQ(with("cranks_mm", Value(Value::List{whole(170), whole(7)})),
            "cannot use shed.cranks_mm[1] (7 must be at least 100) it means: Cranks, left and right");
  EXPECT_EQ(with("tools", whole(6)), "cannot use shed.tools (it is not a table of keys and values) it means: Sizes of its tools");
  EXPECT_EQ(with("tools", Value(Value::Map{{"key", whole(0)}})),
            "cannot use shed.tools.key (0 must be above 0) it means: Sizes of its tools");
}

TEST(Read, AsksTheComponentForItsRules) {
  const Value::Map one{{"name", text("a")}, {"wheels", Value(Value::List{Value(Value::Map{})})}};
  EXPECT_EQ(refusal(one), "there is one wheel (that is a unicycle) add another");
  EXPECT_EQ(read_unchecked<Bicycle>(Value(one)).wheels.size(), 1u);
}

TEST(Read, TakesAPartOfAMapIfAsked) {
  const Value::Map more{{"name", text("a")}, {"else", whole(1)}};
  EXPECT_EQ(read<Bicycle>(Value(more), {}, Others::ignored).name, "a");
}

TEST(Require, HoldsForAProgramToo) {
  Bicycle made{.name = "a", .wheels = {{}, {}}};
  EXPECT_NO_THROW(require(made));
  made.wheels[0].radius_mm = 2000;
  EXPECT_THROW(require(made), SetupError);
  made.wheels.clear();
  made.colour = static_cast<Colour>(7);
  EXPECT_THROW(require(made), SetupError);
}

TEST(Describe, SaysWhatAModelNeeds) {
  const Value described = describe<Bicycle>();
  EXPECT_EQ(*described.find("name")->as<std::string>(), "Bicycle");
  EXPECT_TRUE(*described.find("has_rules")->as<bool>());
  const auto& keys = *described.find("keys")->as<Value::List>();
  ASSERT_EQ(keys.size(), 10u);
  EXPECT_EQ(keys[0].find("default"), nullptr);
  EXPECT_EQ(*keys[1].find("default")->as<std::string>(), "green");
  EXPECT_EQ(*keys[3].find("type")->find("kind")->as<std::string>(), "optional");
  EXPECT_TRUE(keys[3].find("default")->is_null());
  EXPECT_EQ(*keys[3].find("least")->as<double>(), 3);
  EXPECT_EQ(*keys[5].find("type")->find("of")->find("name")->as<std::string>(), "Wheel");
  EXPECT_EQ(keys[5].find("type")->find("length"), nullptr);
  EXPECT_EQ(*keys[6].find("type")->find("kind")->as<std::string>(), "choice");
  EXPECT_EQ(*keys[6].find("type")->find("names")->as<Value::List>()->back().as<std::int64_t>(), 2);
  EXPECT_EQ(*keys[7].find("type")->find("length")->as<std::int64_t>(), 2);
  EXPECT_EQ(*keys[7].find("default")->as<Value::List>()->back().as<double>(), 165);
  EXPECT_EQ(*keys[8].find("default")->as<Value::List>()->front().find("radius_mm")->as<double>(), 250);
  EXPECT_EQ(*keys[9].find("type")->find("kind")->as<std::string>(), "map");
  EXPECT_EQ(*keys[9].find("default")->find("wrench")->as<double>(), 15);
}

TEST(FirstBroken, SaysTheFirstOfSeveral) {
  EXPECT_FALSE(first_broken({{false, {"a", "", "", ""}}}));
  EXPECT_EQ(first_broken({{false, {"a", "", "", ""}}, {true, {"b", "", "", ""}}, {true, {"c", "", "", ""}}})->key, "b");
}

}  // namespace
}  // namespace nanet::config
