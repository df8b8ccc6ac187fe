// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/glob.h"

#include <string>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

TEST(GlobTest, PlainTextMatchesItselfOnly) {
  EXPECT_TRUE(MatchesGlob("kube-system", "kube-system"));
  EXPECT_FALSE(MatchesGlob("kube-system", "kube-systems"));
  EXPECT_FALSE(MatchesGlob("kube-system", "my-kube-system"));
  EXPECT_TRUE(MatchesGlob("", ""));
  EXPECT_FALSE(MatchesGlob("", "a"));
}

TEST(GlobTest, StarsMatchAnythingAnywhere) {
  EXPECT_TRUE(MatchesGlob("*", ""));
  EXPECT_TRUE(MatchesGlob("kube-*", "kube-"));
  EXPECT_TRUE(MatchesGlob("*-system", "kube-system"));
  EXPECT_TRUE(MatchesGlob("a*b*c", "aXbXbYc"));
  EXPECT_FALSE(MatchesGlob("a*b*c", "aXbXbYd"));
  EXPECT_TRUE(MatchesGlob("**", "anything"));
}

TEST(GlobTest, QuestionMarksMatchOneCharacter) {
  EXPECT_TRUE(MatchesGlob("team-?", "team-1"));
  EXPECT_FALSE(MatchesGlob("team-?", "team-"));
  EXPECT_FALSE(MatchesGlob("team-?", "team-12"));
}

TEST(GlobTest, ManyStarsTakeNoTime) {
  const std::string text(1000, 'a');
  EXPECT_FALSE(MatchesGlob("a*a*a*a*a*a*a*a*a*a*a*a*b", text));
}

}  // namespace
}  // namespace resmgr
