// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/names.h"

#include <string>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

TEST(NamesTest, NodesAreSubdomains) {
  for (const std::string& name : {std::string("n1"), std::string("worker-1.example.com"),
                                  std::string("10.0.0.1"), std::string(253, 'a')}) {
    EXPECT_TRUE(IsSubdomain(name)) << name;
  }
  for (const std::string& name :
       {std::string(), std::string("N1"), std::string("a b"), std::string("a/b"),
        std::string("a_b"), std::string("-a"), std::string("a-"), std::string("a..b"),
        std::string(".a"), std::string("a."), std::string("a\nb"), std::string(254, 'a')}) {
    EXPECT_FALSE(IsSubdomain(name)) << name;
  }
}

TEST(NamesTest, LabelsMayHaveADomain) {
  for (const std::string& key :
       {std::string("group"), std::string("cri-resource-manager.intel.com/group"),
        std::string("a.io/B_c.d-1"), std::string(63, 'x')}) {
    EXPECT_TRUE(IsLabelKey(key)) << key;
  }
  for (const std::string& key :
       {std::string(), std::string("/"), std::string("a/"), std::string("/a"), std::string("a/b/c"),
        std::string("A.io/b"), std::string("a b"), std::string("_a"), std::string(64, 'x')}) {
    EXPECT_FALSE(IsLabelKey(key)) << key;
  }
}

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

const StringMap& Labels() {
  static const StringMap labels = {{"app", "web"}, {"tier", "front"}, {"example.com/empty", ""}};
  return labels;
}

bool Matches(std::string_view selector) {
  const StatusOr<LabelSelector> parsed = LabelSelector::Parse(selector);
  EXPECT_TRUE(parsed.ok()) << selector << ": " << parsed.status();
  return parsed.ok() && parsed->Matches(Labels());
}

TEST(LabelSelectorTest, MatchesAsKubectlDoes) {
  for (const char* const selector :
       {"", " ", "app=web", "app==web", "app = web", "app!=db", "zone!=a", "app", "!zone",
        "app in (web,db)", "app in (db, web)", "tier notin (back)", "zone notin (a,b)",
        "app=web,tier in (front,back),!zone", "example.com/empty=", "example.com/empty"}) {
    EXPECT_TRUE(Matches(selector)) << selector;
  }
  for (const char* const selector : {"app=db", "app!=web", "zone", "!app", "zone=a", "app in (db)",
                                     "zone in (a)", "app notin (web)", "app=web,tier=back"}) {
    EXPECT_FALSE(Matches(selector)) << selector;
  }
}

TEST(LabelSelectorTest, RefusesWhatItCannotRead) {
  for (const char* const wrong :
       {"=web", "app=we b", "app in web", "app in (web", "app within (web)", ",", "app=web,", "!",
        "a\x1b[2J", "app=(web)", "in (a)", "app in (a) b", "/app=web", "a/b/c", "-app", "app=-web",
        "app in (web,.)", "Example.com/app"}) {
    const StatusOr<LabelSelector> parsed = LabelSelector::Parse(wrong);
    ASSERT_FALSE(parsed.ok()) << wrong;
    EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace resmgr
