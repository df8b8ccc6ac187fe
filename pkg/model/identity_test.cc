// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/identity.h"

#include <gtest/gtest.h>

namespace resmgr {
namespace {

TEST(IdentityTest, LabelsFillWhatIsEmpty) {
  Pod pod;
  pod.name = "known";
  pod.labels = {{"io.kubernetes.pod.name", "other"},
                {"io.kubernetes.pod.namespace", "shop"},
                {"io.kubernetes.pod.uid", "u-1"}};
  pod.cgroup_parent = "/kubepods/podu-2";
  CompleteIdentity(pod);
  EXPECT_EQ(pod.name, "known");
  EXPECT_EQ(pod.namespace_name, "shop");
  EXPECT_EQ(pod.uid.value(), "u-1");
}

TEST(IdentityTest, TheCgroupTellsTheUid) {
  Pod pod;
  pod.cgroup_parent = "node-kubepods-burstable-poda_b.slice";
  CompleteIdentity(pod);
  EXPECT_EQ(pod.uid.value(), "a-b");
  EXPECT_EQ(pod.name, "");

  Pod none;
  CompleteIdentity(none);
  EXPECT_TRUE(none.uid.empty());
}

TEST(IdentityTest, ContainersHaveALabelToo) {
  EXPECT_EQ(ContainerNameOf({{"io.kubernetes.container.name", "web"}}), "web");
  EXPECT_EQ(ContainerNameOf({}), "");
}

}  // namespace
}  // namespace resmgr
