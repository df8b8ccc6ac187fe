// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/docker_labels.h"

#include <gtest/gtest.h>

namespace resmgr::docker {
namespace {

TEST(DockerLabelsTest, LabelsSayWhatAContainerIs) {
  const Identity sandbox = ReadIdentity({{"io.kubernetes.docker.type", "podsandbox"},
                                         {"io.kubernetes.container.name", "POD"},
                                         {"io.kubernetes.pod.name", "web"},
                                         {"io.kubernetes.pod.namespace", "shop"},
                                         {"io.kubernetes.pod.uid", "u1"},
                                         {"app", "web"},
                                         {"annotation.example.com/a", "b"}},
                                        "k8s_POD_web_shop_u1_0");
  EXPECT_EQ(sandbox.kind, Identity::Kind::kSandbox);
  EXPECT_EQ(sandbox.pod.name, "web");
  EXPECT_EQ(sandbox.pod.namespace_name, "shop");
  EXPECT_EQ(sandbox.pod.uid, PodUid("u1"));
  EXPECT_TRUE(sandbox.pod.labels.contains("app"));
  EXPECT_EQ(sandbox.pod.annotations, (StringMap{{"example.com/a", "b"}}));
  const Identity container = ReadIdentity({{"io.kubernetes.docker.type", "container"},
                                           {"io.kubernetes.sandbox.id", "s1"},
                                           {"io.kubernetes.container.name", "main"}},
                                          "k8s_main_web_shop_u1_3");
  EXPECT_EQ(container.kind, Identity::Kind::kContainer);
  EXPECT_EQ(container.pod_id, PodSandboxId("s1"));
  EXPECT_EQ(container.container, "main");
  EXPECT_EQ(container.attempt, 3U);
  EXPECT_EQ(container.pod.namespace_name, "shop");
}

TEST(DockerLabelsTest, NamesHaveSixPartsOrSevenAfterAConflict) {
  const StringMap labels{{"io.kubernetes.sandbox.id", "s1"}};
  const Identity seven = ReadIdentity(labels, "k8s_main_web_shop_u1_12_5f3a9c");
  EXPECT_EQ(seven.container, "main");
  EXPECT_EQ(seven.attempt, 12U);
  const Identity other = ReadIdentity(labels, "some_name");
  EXPECT_EQ(other.kind, Identity::Kind::kContainer);
  EXPECT_EQ(other.container, "");
  EXPECT_EQ(other.attempt, 0U);
}

TEST(DockerLabelsTest, OtherContainersAreNoPods) {
  EXPECT_EQ(ReadIdentity({}, "k8s_main_web_shop_u1_0").kind, Identity::Kind::kOther);
  EXPECT_EQ(ReadIdentity({{"io.kubernetes.docker.type", "container"}}, "x").kind,
            Identity::Kind::kOther);
}

TEST(DockerLabelsTest, BothCgroupDriversTellTheClass) {
  Pod pod;
  AddCgroup("/kubepods/burstable/pod5c1d", pod);
  EXPECT_EQ(pod.qos, QosClass::kBurstable);
  EXPECT_EQ(pod.uid, PodUid("5c1d"));
  Pod systemd;
  AddCgroup("kubepods-pod5c1d_2e.slice", systemd);
  EXPECT_EQ(systemd.qos, QosClass::kGuaranteed);
  EXPECT_EQ(systemd.uid, PodUid("5c1d-2e"));
  Pod best_effort;
  AddCgroup("kubepods-besteffort-pod5c1d.slice", best_effort);
  EXPECT_EQ(best_effort.qos, QosClass::kBestEffort);
}

TEST(DockerLabelsTest, ASliceIsInOthers) {
  EXPECT_EQ(WholeCgroup("kubepods-burstable-podu.slice"),
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podu.slice");
  EXPECT_EQ(WholeCgroup("a.slice"), "/a.slice");
  EXPECT_EQ(WholeCgroup("/kubepods/podu"), "/kubepods/podu");
  EXPECT_EQ(WholeCgroup("-.slice"), "-.slice");
  EXPECT_EQ(WholeCgroup(""), "");
}

// Any client of dockerd may send one.
TEST(DockerLabelsTest, ASliceWhosePathWouldBeTooLongIsInNoOther) {
  std::string slice;
  for (int i = 0; i < 4096; ++i)
    slice += "a-";
  slice += "a.slice";
  const std::string whole = WholeCgroup(slice);
  EXPECT_TRUE(whole == "/" + slice) << whole.size() << " bytes";
  EXPECT_TRUE(CgroupForEngine(whole, slice) == slice);
}

}  // namespace
}  // namespace resmgr::docker
