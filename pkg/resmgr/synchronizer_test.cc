// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/synchronizer.h"

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/testing/fake_runtime_client.h"
#include "pkg/sys/manual_clock.h"

namespace resmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SynchronizerTest : public testing::Test, private Synchronizer::Owner {
 protected:
  Synchronizer::Ready Note(const std::string& name) {
    return [this, name](const Status&) { ran_.push_back(name); };
  }
  void Connect() {
    synchronizer_.Connected();
    runtime_.AnswerList();
    ASSERT_TRUE(synchronizer_.ready());
  }

  ManualClock clock_;
  test::FakeRuntimeClient runtime_;
  std::function<void()> on_inventory_;
  std::vector<std::string> ran_;
  Synchronizer synchronizer_{clock_, runtime_, *this, {}};

 private:
  void OnListing() override {}
  Status OnInventory(const RuntimeInventory&, const Synchronizer::Removed&, bool) override {
    if (const auto now = std::exchange(on_inventory_, nullptr)) now();
    return OkStatus();
  }
  bool Knows(const Pod&) const override { return false; }
  bool Knows(const RuntimeContainer&) const override { return false; }
  void OnListFailed(const Status&) override {}
};

// A start that waits for a list would otherwise never go on, and another one would go on before its
// list arrives.
TEST_F(SynchronizerTest, AListThatIsWantedWhileOneIsTakenOverComesAfterIt) {
  Connect();
  synchronizer_.ListNow(Note("first"));
  on_inventory_ = [this] { synchronizer_.ListNow(Note("second")); };
  runtime_.AnswerList();
  EXPECT_THAT(ran_, ElementsAre("first"));
  ASSERT_THAT(runtime_.lists, SizeIs(1));
  runtime_.AnswerList();
  EXPECT_THAT(ran_, ElementsAre("first", "second"));
  EXPECT_THAT(runtime_.lists, IsEmpty());
}

}  // namespace
}  // namespace resmgr
