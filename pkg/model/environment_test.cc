// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/environment.h"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;
using testing::FieldsAre;
using testing::IsEmpty;

TEST(EnvironmentTest, KeepsWhatIsAddedInItsOrder) {
  Environment environment;
  EXPECT_THAT(environment, IsEmpty());
  environment.Add("A", "1");
  environment.Add("", "no name");
  environment.Add("B=C", "");
  environment.Add("A", "again\0and more"s);
  EXPECT_THAT(environment, ElementsAre(FieldsAre("A", "1"), FieldsAre("", "no name"),
                                       FieldsAre("B=C", ""), FieldsAre("A", "again\0and more"s)));
  EXPECT_EQ(environment.size(), 4U);
  EXPECT_EQ(environment[2].name, "B=C");
  EXPECT_EQ(environment.Text(1), "=no name");
}

TEST(EnvironmentTest, ReadsTexts) {
  Environment environment;
  for (const char* const text : {"A=1", "B=x=y", "C", "=", ""})
    environment.AddText(text);
  EXPECT_EQ(environment, (Environment{{"A", "1"}, {"B", "x=y"}, {"C", ""}, {"", ""}, {"", ""}}));
}

TEST(EnvironmentTest, AnotherDivisionOfTheSameBytesIsAnotherEnvironment) {
  EXPECT_NE((Environment{{"A", "B=1"}}), (Environment{{"A=B", "1"}}));
  EXPECT_NE((Environment{{"A", "1"}, {"B", "2"}}), (Environment{{"A", "1B=2"}}));
}

TEST(EnvironmentTest, CopiesAreTheirOwn) {
  Environment environment{{"A", "1"}};
  Environment copy = environment;
  copy.Add("B", std::string(1'000, 'x'));
  EXPECT_THAT(environment, ElementsAre(FieldsAre("A", "1")));
  const Environment moved = std::move(copy);
  EXPECT_THAT(moved, ElementsAre(FieldsAre("A", "1"), FieldsAre("B", std::string(1'000, 'x'))));
}

}  // namespace
}  // namespace resmgr
