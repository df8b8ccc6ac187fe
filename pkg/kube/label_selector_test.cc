// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/label_selector.h"

#include <gtest/gtest.h>

namespace resmgr {
namespace {

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
        "a\x1b[2J", "app=(web)", "in (a)", "app in (a) b"}) {
    const StatusOr<LabelSelector> parsed = LabelSelector::Parse(wrong);
    ASSERT_FALSE(parsed.ok()) << wrong;
    EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace resmgr
