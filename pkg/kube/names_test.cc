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

}  // namespace
}  // namespace resmgr
