// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/qos.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

constexpr const char* kUid = "12345678-abcd-4321-8765-0123456789ab";
constexpr const char* kSystemdUid = "12345678_abcd_4321_8765_0123456789ab";

void ExpectPod(const std::string& path, QosClass qos, const std::string& uid) {
  const std::optional<PodCgroup> pod = ParsePodCgroup(path);
  ASSERT_TRUE(pod.has_value()) << path;
  EXPECT_EQ(pod->qos, qos) << path;
  EXPECT_EQ(pod->uid.value(), uid) << path;
}

TEST(QosTest, ReadsCgroupfsNamesBelowAnyRoot) {
  for (const char* root : {"", "/", "/a/", "/a/b/", "a/b/c/", "/kubelet.slice/x/"}) {
    ExpectPod(fmt::format("{}kubepods/pod{}", root, kUid), QosClass::kGuaranteed, kUid);
    ExpectPod(fmt::format("{}kubepods/burstable/pod{}", root, kUid), QosClass::kBurstable, kUid);
    ExpectPod(fmt::format("{}kubepods/besteffort/pod{}/", root, kUid), QosClass::kBestEffort, kUid);
  }
}

TEST(QosTest, ReadsSystemdNamesBelowAnyRoot) {
  for (const char* root : {"", "/", "/a/b/", "/a.slice/a-b.slice/"}) {
    ExpectPod(fmt::format("{}kubepods.slice/kubepods-pod{}.slice", root, kSystemdUid),
              QosClass::kGuaranteed, kUid);
    ExpectPod(
        fmt::format("{}kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{}.slice",
                    root, kSystemdUid),
        QosClass::kBurstable, kUid);
    ExpectPod(fmt::format("{}kubepods-besteffort-pod{}.slice", root, kSystemdUid),
              QosClass::kBestEffort, kUid);
  }
}

TEST(QosTest, ReadsSystemdNamesWithTheRootInTheSlice) {
  ExpectPod(fmt::format("/a.slice/a-b.slice/a-b-kubepods.slice/a-b-kubepods-burstable.slice/"
                        "a-b-kubepods-burstable-pod{}.slice",
                        kSystemdUid),
            QosClass::kBurstable, kUid);
  ExpectPod(fmt::format("a-kubepods-pod{}.slice", kSystemdUid), QosClass::kGuaranteed, kUid);
}

TEST(QosTest, ReadsPodsOfTheSystem) {
  for (const char* root : {"", "/", "/a/b/"}) {
    ExpectPod(fmt::format("{}kubepods/system/pod{}", root, kUid), QosClass::kGuaranteed, kUid);
    ExpectPod(fmt::format("{}kubepods/system/burstable/pod{}", root, kUid), QosClass::kBurstable,
              kUid);
    ExpectPod(fmt::format("{}kubepods/system/besteffort/pod{}", root, kUid), QosClass::kBestEffort,
              kUid);
  }
  ExpectPod(fmt::format("/kubepods.slice/kubepods-system.slice/kubepods-system-burstable.slice/"
                        "kubepods-system-burstable-pod{}.slice",
                        kSystemdUid),
            QosClass::kBurstable, kUid);
  ExpectPod(fmt::format("a-kubepods-system-besteffort-pod{}.slice", kSystemdUid),
            QosClass::kBestEffort, kUid);
  ExpectPod(fmt::format("kubepods-system-pod{}.slice", kSystemdUid), QosClass::kGuaranteed, kUid);
}

TEST(QosTest, ReadsUidsOfStaticPods) {
  ExpectPod("/kubepods/burstable/pod0123456789abcdef0123456789abcdef", QosClass::kBurstable,
            "0123456789abcdef0123456789abcdef");
}

TEST(QosTest, OtherPathsAreNoPods) {
  for (const char* path : {"",
                           "/",
                           "//",
                           "kubepods",
                           "/kubepods/",
                           "/kubepods/burstable",
                           "kubepods.slice",
                           "/kubepods/burstable/pod",
                           "/kubepods-pod.slice",
                           "/kubepods/unknown/pod1",
                           "/kubepods/system",
                           "/system/pod1",
                           "/kubepods/burstable/system/pod1",
                           "/kubepods/system/system/pod1",
                           "system-burstable-pod1.slice",
                           "/kubepods/burstable/besteffort/pod1",
                           "/system.slice/containerd.service",
                           "/user/pod1",
                           "k8s.io/pod1",
                           "/kubepods/pod1/container",
                           "kubepods-burstable-pod1",
                           ".slice",
                           "-.slice",
                           "burstable-pod1.slice",
                           "/notkubepods/pod1",
                           "xkubepods-pod1.slice",
                           "/kubepods//pod1",
                           "/kubepods/pod 1"}) {
    EXPECT_EQ(ParsePodCgroup(path), std::nullopt) << path;
  }
}

}  // namespace
}  // namespace resmgr
