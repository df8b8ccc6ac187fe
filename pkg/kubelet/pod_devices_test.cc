// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/base/wire.h"
#include "pkg/kubelet/pod_resources.h"
#include "pkg/pipeline/hint_finder.h"

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// One field of a message.
std::string Field(uint32_t number, std::string_view bytes) {
  std::string out;
  FieldWriter(out).Bytes(number, bytes);
  return out;
}

std::string Node(uint64_t id) {
  std::string out;
  FieldWriter(out).Number(1, id);
  return Field(1, out);
}

// An entry of a container's devices.
std::string Device(const std::string& resource, const std::string& nodes) {
  return Field(2, Field(1, resource) + Field(2, "id") + Field(3, nodes));
}

std::string PodOf(const std::string& name, const std::string& container,
                  const std::string& devices) {
  return Field(1, Field(1, name) + Field(2, "ns") + Field(3, Field(1, container) + devices));
}

const PodContainer kMain = {.namespace_name = "ns", .pod = "pod", .container = "main"};
const NodeSet kNodes = {0, 1, 2, 3};

std::vector<std::string> Texts(const StatusOr<std::vector<LocalityHint>>& hints) {
  std::vector<std::string> texts;
  if (!hints.ok()) return {std::string(Message(hints.status()))};
  for (const LocalityHint& hint : *hints)
    texts.push_back(hint.source + "=" + hint.nodes.ToString());
  return texts;
}

TEST(PodDevicesTest, RequestsThePodByName) {
  EXPECT_EQ(GetPodResourcesRequest(kMain), Field(1, "pod") + Field(2, "ns"));
}

// Kubelets have one entry for each device, and for each node of a device with several.
TEST(PodDevicesTest, EntriesOfOneResourceAreOneHint) {
  const std::string devices = Device("vendor.com/gpu", Node(2)) +
                              Device("vendor.com/nic", Node(1)) + Device("vendor.com/gpu", Node(3));
  EXPECT_THAT(Texts(ReadPodDevices(PodOf("pod", "main", devices), kMain, kNodes)),
              ElementsAre("pod-resources podresourceapi:vendor.com/gpu=2-3",
                          "pod-resources podresourceapi:vendor.com/nic=1"));
}

TEST(PodDevicesTest, NodeZeroIsNotWritten) {
  const std::string devices = Device("vendor.com/gpu", Field(1, ""));
  EXPECT_THAT(Texts(ReadPodDevices(PodOf("pod", "main", devices), kMain, kNodes)),
              ElementsAre("pod-resources podresourceapi:vendor.com/gpu=0"));
}

TEST(PodDevicesTest, OnlyTheContainerItselfCounts) {
  const std::string gpu = Device("vendor.com/gpu", Node(2));
  EXPECT_THAT(Texts(ReadPodDevices(PodOf("pod", "other", gpu), kMain, kNodes)), IsEmpty());
  EXPECT_THAT(Texts(ReadPodDevices(PodOf("pod2", "main", gpu), kMain, kNodes)), IsEmpty());
  const PodContainer elsewhere = {.namespace_name = "ns2", .pod = "pod", .container = "main"};
  EXPECT_THAT(Texts(ReadPodDevices(PodOf("pod", "main", gpu), elsewhere, kNodes)), IsEmpty());
  const std::string list = PodOf("pod2", "main", Device("vendor.com/a", Node(0))) +
                           PodOf("pod", "main", Device("vendor.com/b", Node(1)));
  EXPECT_THAT(Texts(ReadPodDevices(list, kMain, kNodes)),
              ElementsAre("pod-resources podresourceapi:vendor.com/b=1"));
}

TEST(PodDevicesTest, WhatIsNoNodeOfTheMachineIsNoHint) {
  for (const uint64_t id : {uint64_t{4}, uint64_t{1} << 40, ~uint64_t{0}}) {
    const std::string devices = Device("vendor.com/gpu", Node(id));
    EXPECT_THAT(Texts(ReadPodDevices(PodOf("pod", "main", devices), kMain, kNodes)), IsEmpty());
  }
  const std::string none = Device("vendor.com/gpu", "");
  EXPECT_THAT(Texts(ReadPodDevices(PodOf("pod", "main", none), kMain, kNodes)), IsEmpty());
}

TEST(PodDevicesTest, NamesAreThoseOfResources) {
  for (const std::string& name : {std::string(), std::string("a b"), std::string("a\nb"),
                                  std::string(318, 'x'), std::string("\xc3\xa4")}) {
    const std::string devices = Device(name, Node(2));
    EXPECT_THAT(Texts(ReadPodDevices(PodOf("pod", "main", devices), kMain, kNodes)), IsEmpty());
  }
}

TEST(PodDevicesTest, NumberOfHintsIsBounded) {
  std::string devices;
  for (int i = 0; i < 1000; ++i)
    devices += Device("vendor.com/" + std::to_string(i), Node(2));
  const auto hints = ReadPodDevices(PodOf("pod", "main", devices), kMain, kNodes);
  ASSERT_TRUE(hints.ok());
  EXPECT_THAT(*hints, SizeIs(kMaxHints));
}

// Neither ends the process nor gives hints.
TEST(PodDevicesTest, EveryBrokenAnswerIsAnError) {
  const std::string whole =
      PodOf("pod", "main", Device("vendor.com/gpu", Node(2)) + Device("vendor.com/nic", Node(1)));
  for (size_t size = 1; size < whole.size(); ++size) {
    EXPECT_FALSE(ReadPodDevices(whole.substr(0, size), kMain, kNodes).ok()) << size;
  }
  EXPECT_FALSE(ReadPodDevices(PodOf("pod", "main", Field(2, "\xff")), kMain, kNodes).ok());
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    [[maybe_unused]] const auto any = ReadPodDevices(damaged, kMain, kNodes);
  }
}

}  // namespace
}  // namespace resmgr
