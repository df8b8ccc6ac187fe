// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_sync.h"

#include <optional>

#include <gtest/gtest.h>

#include "pkg/hooks/testing/hook_node.h"
#include "test/support/status_matchers.h"

namespace resmgr::hooks {
namespace {

using test::IsOk;

class HookSyncTest : public HookStageTest {
 protected:
  static SandboxFacts Sandbox(const std::string& id) {
    SandboxFacts facts;
    facts.pod = PodNamed("web");
    facts.pod.id = PodSandboxId(id);
    return facts;
  }

  HookStore store_;
  HookSync sync_{clock_, runtime_, store_};
};

TEST_F(HookSyncTest, AsksUntilTheRuntimeAnswers) {
  sync_.Refresh();
  HeldRuntime::Answer(runtime_.lists, Unavailable("not there"));
  EXPECT_FALSE(sync_.ready());
  clock_.Advance(HookSync::kRetry);
  HeldRuntime::Answer(runtime_.lists,
                      RuntimeAccess::Everything{.sandboxes = {Sandbox("p")}, .containers = {}});
  EXPECT_TRUE(sync_.ready());
  EXPECT_NE(store_.FindPod("p"), nullptr);
}

TEST_F(HookSyncTest, ASearchWaitsForTheFirstList) {
  sync_.Refresh();
  StatusOr<HookPodPtr> found = Internal("nothing yet");
  sync_.FindPod(PodSandboxId("p"), [&](StatusOr<HookPodPtr> pod) { found = std::move(pod); });
  EXPECT_TRUE(runtime_.asked_pods.empty());
  HeldRuntime::Answer(runtime_.lists,
                      RuntimeAccess::Everything{.sandboxes = {Sandbox("p")}, .containers = {}});
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ((*found)->request.pod_meta().name(), "web");
}

TEST_F(HookSyncTest, ASearchAsksForAContainerAndThenForItsPod) {
  StatusOr<HookContainerPtr> found = Internal("nothing yet");
  sync_.FindContainer(ContainerId("c"),
                      [&](StatusOr<HookContainerPtr> container) { found = std::move(container); });
  HeldRuntime::Answer(runtime_.asked_containers, Container("c", "p"));
  HeldRuntime::Answer(runtime_.asked_pods, Sandbox("p"));
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ((*found)->pod, store_.FindPod("p"));
  EXPECT_EQ((*found), store_.FindContainer("c"));
}

TEST_F(HookSyncTest, AListThatMayMissSomethingIsAskedOnceMore) {
  sync_.Refresh();
  sync_.Refresh();
  sync_.Refresh();
  ASSERT_EQ(runtime_.lists.size(), 1u);
  HeldRuntime::Answer(runtime_.lists, RuntimeAccess::Everything());
  ASSERT_EQ(runtime_.lists.size(), 1u);
  HeldRuntime::Answer(runtime_.lists, RuntimeAccess::Everything());
  EXPECT_TRUE(runtime_.lists.empty());
}

TEST_F(HookSyncTest, AStoreThatGrowsIsComparedWithTheRuntime) {
  for (size_t i = 0; i <= HookSync::kLeastGrowth; ++i)
    store_.Learn(Sandbox("p" + std::to_string(i)));
  sync_.NoteGrowth();
  HeldRuntime::Answer(runtime_.lists, RuntimeAccess::Everything());
  EXPECT_EQ(store_.size(), 0u);
  sync_.NoteGrowth();
  EXPECT_TRUE(runtime_.lists.empty());
}

TEST_F(HookSyncTest, NothingIsToldAfterItsEnd) {
  std::optional<HookSync> sync(std::in_place, clock_, runtime_, store_);
  sync->Refresh();
  sync->FindContainer(ContainerId("c"), [](const auto&) { ADD_FAILURE(); });
  sync.reset();
  HeldRuntime::Answer(runtime_.lists, RuntimeAccess::Everything());
  EXPECT_TRUE(runtime_.asked_containers.empty());
}

}  // namespace
}  // namespace resmgr::hooks
