// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/util/features.h"

#include <gtest/gtest.h>

#include "vtkv/testing/format_page.h"
#include "vtkv/testing/golden.h"

namespace vtkv {
namespace {

Features example() { return {.compat = {"notes"}, .ro_compat = {"sums", "a_1"}, .incompat = {"zoned"}}; }

struct Feature {
  int number = 0;
  std::string name;
};

// Several in the order of their classes and names.
TEST(Features, FeatureIsAsOnThePage) {
  constexpr Features::Names Features::* kClasses[] = {&Features::compat, &Features::ro_compat, &Features::incompat};
  const auto encode = [&](const Feature& feature) {
    Features features;
    (features.*kClasses[feature.number]).insert(feature.name);
    return features.encode();
  };
  const auto decode = [&](const std::string& bytes, Feature* feature) {
    Features features;
    const bool good = Features::decode(bytes, &features);
    for (int number = 0; number < 3; ++number) {
      for (const std::string& name : features.*kClasses[number]) {
        *feature = {number, name};
      }
    }
    return good;
  };
  FormatCheck<Feature> check("Features", encode, decode);
  check.example("feature", {1, "sums"});
  check.field("class", 2, &Feature::number);
  check.names("class", {{"compat", 0}, {"ro_compat", 1}, {"incompat", 2}});
  check.derived("bytes of the name", [](const Feature& feature) { return PageValue(feature.name.size()); });
  check.field("name", "another_1", &Feature::name);
  EXPECT_EQ(check.findings(), "");
  std::string all;
  for (const Feature& feature : {Feature{0, "notes"}, {1, "a_1"}, {1, "sums"}, {2, "zoned"}}) {
    all += encode(feature);
  }
  EXPECT_EQ(example().encode(), all);
}

TEST(Features, AreReadAsTheyWereWritten) {
  Features read;
  ASSERT_TRUE(Features::decode(example().encode(), &read));
  EXPECT_EQ(read, example());
  ASSERT_TRUE(Features::decode("", &read));
  EXPECT_TRUE(read.empty());
  Features longest{.compat = {std::string(63, 'x')}};
  ASSERT_TRUE(Features::decode(longest.encode(), &read));
  EXPECT_EQ(read, longest);
}

TEST(Features, MalformedBytesAreRefused) {
  const std::string good = example().encode();
  Features read;
  std::set<size_t> between = {0, 7, 12, 18, good.size()};
  for (size_t length = 0; length <= good.size(); ++length) {
    EXPECT_EQ(Features::decode(good.substr(0, length), &read), between.contains(length)) << length;
  }
  for (const std::string& bad :
       {std::string("\3\1a", 3), std::string("\0\0", 2), std::string("\0\1A", 3), std::string("\0\1 ", 3),
        std::string("\0\1a\0\1a", 6), std::string("\1\1a\0\1a", 6), std::string("\0\100", 2) + std::string(64, 'x')}) {
    EXPECT_FALSE(Features::decode(bad, &read)) << hex_dump(bad);
  }
}

// Each class, unknown: may it be read, may it be written to?
TEST(Features, WhatIsNotKnownIsRefusedByItsName) {
  const auto message = [](const Features& features, bool to_write) {
    const Status status = features.check("/db/manifest", example(), to_write);
    EXPECT_TRUE(status.ok() || status.code() == Status::Code::unsupported);
    return status.ok() ? std::string() : std::string(status.message());
  };
  const auto says = [](const std::string& text, const std::string& name) {
    return text.starts_with("/db/manifest: ") && text.find(": " + name) != std::string::npos &&
           text.find("use that program") != std::string::npos;
  };
  EXPECT_EQ(message(example(), true), "");
  EXPECT_EQ(message({}, true), "");
  EXPECT_EQ(message({.compat = {"dots"}}, true), "");
  EXPECT_EQ(message({.ro_compat = {"dots", "sums"}}, false), "");
  EXPECT_PRED2(says, message({.ro_compat = {"dots", "sums"}}, true), "dots. ");
  EXPECT_PRED2(says, message({.incompat = {"dots", "lines", "zoned"}}, false), "dots, lines; ");
  EXPECT_PRED2(says, message({.incompat = {"dots"}}, true), "dots; ");
  // A name is known in its class only.
  EXPECT_PRED2(says, message({.incompat = {"notes"}}, false), "notes; ");
}

TEST(Features, AddedOnesJoinTheirClass) {
  Features features{.compat = {"a"}};
  features.add({.compat = {"a", "b"}, .ro_compat = {}, .incompat = {"c"}});
  EXPECT_EQ(features, (Features{.compat = {"a", "b"}, .ro_compat = {}, .incompat = {"c"}}));
}

}  // namespace
}  // namespace vtkv
