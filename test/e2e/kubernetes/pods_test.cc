// SPDX-License-Identifier: Apache-2.0
// Pods by way of the real kubelet and runtime.
#include <string>

#include "test/e2e/kubernetes/kubernetes_fixture.h"

namespace resmgr::test {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

TEST_F(KubernetesTest, PlacesPodsOfEveryClass) {
  Apply(kDefaultMap, Cluster::Policy());
  RunOneOfEach();
  EXPECT_THAT(Containers(), SizeIs(4));
  ExpectGuaranteedAlone();
  // The init container was alone too, and handed its CPU on.
  EXPECT_THAT(cluster_->FileOf("guaranteed", "init", "cpus"),
              HasSubstr("Cpus_allowed_list:\t" +
                        Containers().at("guaranteed/main").cpus.ToString() + "\n"));
}

TEST_F(KubernetesTest, RestartsMoveNothing) {
  Apply(kDefaultMap, Cluster::Policy());
  RunOneOfEach();
  const auto before = Containers();
  ASSERT_THAT(cluster_->RestartKubelet(), IsOk());
  EXPECT_EQ(Containers(), before) << "kubelet";
  ASSERT_THAT(cluster_->RestartRelay(), IsOk());
  EXPECT_EQ(Containers(), before) << "cri-resmgr";
  ASSERT_THAT(cluster_->RestartContainerd(), IsOk());
  EXPECT_EQ(Containers(), before) << "containerd";
  // All of them still work together.
  Run({{"later", PodSpec({ContainerSpec("main", Burstable())})}});
  ExpectGuaranteedAlone();
}

}  // namespace
}  // namespace resmgr::test
