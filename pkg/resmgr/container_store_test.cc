// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/container_store.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

class ContainerStoreTest : public ::testing::Test {
 protected:
  ContainerStoreTest() {
    Pod pod;
    pod.id = PodSandboxId("pod");
    pod_ = &store_.PutPod(pod);
  }

  // Named by their numbers.
  std::vector<ContainerKey> AddMany(int count) {
    std::vector<ContainerKey> keys(static_cast<size_t>(count));
    std::ranges::generate(keys, [this, next = 0]() mutable { return Add(std::to_string(next++)); });
    return keys;
  }
  ContainerKey Add(const std::string& name) {
    ContainerRecord& record = store_.Add(*pod_, name);
    ContainerId id("id of " + name);
    EXPECT_TRUE(store_.SetId(record, id));
    return record.container.key;
  }
  std::string NameOf(ContainerKey key) const {
    const ContainerRecord* const record = store_.Find(key);
    return record == nullptr ? "none" : record->container.name;
  }

  ContainerStore store_;
  PodRecord* pod_;
};

// More containers than are remembered as looked for lately, asked for in all orders.
TEST_F(ContainerStoreTest, FindsEachOfManyByItsKey) {
  const std::vector<ContainerKey> keys = AddMany(300);
  for (const size_t step : {1U, 7U, 64U, 128U, 299U}) {
    for (size_t i = 0; i < keys.size(); ++i) {
      const size_t at = i * step % keys.size();
      ASSERT_EQ(NameOf(keys[at]), std::to_string(at));
      ASSERT_EQ(store_.Find(keys[at])->container.key, keys[at]);
    }
  }
}

TEST_F(ContainerStoreTest, DoesNotFindWhatIsErased) {
  const std::vector<ContainerKey> keys = AddMany(130);
  for (size_t i = 0; i < keys.size(); i += 2) {
    ASSERT_NE(store_.Find(keys[i]), nullptr);
    store_.Erase(keys[i]);
    ASSERT_EQ(store_.Find(keys[i]), nullptr);
    ASSERT_EQ(NameOf(keys[i]), "none");
  }
  for (size_t i = 1; i < keys.size(); i += 2)
    ASSERT_EQ(NameOf(keys[i]), std::to_string(i));
}

TEST_F(ContainerStoreTest, AnIdBelongsToOneContainer) {
  Add("first");
  ContainerRecord& second = store_.Add(*pod_, "second");
  ContainerId taken("id of first");
  EXPECT_FALSE(store_.SetId(second, taken));
  EXPECT_EQ(taken, ContainerId("id of first"));
  EXPECT_EQ(store_.FindById(taken)->container.name, "first");
  EXPECT_TRUE(second.container.id.empty());
}

TEST_F(ContainerStoreTest, PodsKeepTheirPlaceWhileOthersComeAndGo) {
  for (int i = 0; i < 200; ++i) {
    Pod other;
    other.id = PodSandboxId("other " + std::to_string(i));
    store_.PutPod(other);
  }
  EXPECT_EQ(store_.FindPod(PodSandboxId("pod")), pod_);
  for (int i = 0; i < 200; ++i)
    store_.ErasePod(PodSandboxId("other " + std::to_string(i)));
  EXPECT_EQ(store_.FindPod(PodSandboxId("pod")), pod_);
  EXPECT_EQ(store_.FindPod(PodSandboxId("other 7")), nullptr);
}

TEST_F(ContainerStoreTest, DoesNotFindAPodThatIsErasedHoweverLatelyItWasLookedFor) {
  Pod other;
  other.id = PodSandboxId("other");
  store_.PutPod(other);
  ASSERT_NE(store_.FindPod(other.id), nullptr);
  ASSERT_NE(store_.all().FindPod(other.id), nullptr);
  store_.ErasePod(other.id);
  EXPECT_EQ(store_.FindPod(other.id), nullptr);
  EXPECT_EQ(store_.all().FindPod(other.id), nullptr);
  other.name = "again";
  store_.PutPod(other);
  EXPECT_EQ(store_.FindPod(other.id)->pod.name, "again");
  EXPECT_EQ(store_.all().FindPod(other.id)->name, "again");
  EXPECT_EQ(store_.FindPod(PodSandboxId("pod")), pod_);
}

}  // namespace
}  // namespace resmgr
