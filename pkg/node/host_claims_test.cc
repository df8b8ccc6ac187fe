// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/host_claims.h"

#include <memory>
#include <optional>

#include <gtest/gtest.h>

#include "pkg/dra/testing/fake_claims.h"
#include "pkg/state/testing/crashing_file_system.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using resmgr::test::RunUntil;

class HostClaimsTest : public testing::Test {
 protected:
  StatusCode Reserve(const std::string& uid) {
    std::optional<StatusCode> code;
    claims_.Reserve(ClaimFor(uid),
                    [&code](const StatusOr<ClaimGrant>& grant) { code = grant.status().code(); });
    return code.value_or(StatusCode::kUnknown);
  }
  static Claim ClaimFor(const std::string& uid) {
    return {.uid = uid,
            .namespace_name = "default",
            .name = "c",
            .parts = {{.request = "r", .device = "d", .node = 0, .cpus = 1}}};
  }

  EventLoop loop_;
  std::unique_ptr<dra::test::FakeHolder> brain_ = std::make_unique<dra::test::FakeHolder>(4);
  ClaimHolder* active_ = brain_.get();
  HostClaims claims_{loop_, [this] { return active_; }};
};

TEST_F(HostClaimsTest, AreThoseOfTheBrain) {
  EXPECT_EQ(Reserve("a"), StatusCode::kOk);
  EXPECT_EQ(claims_.Held().size(), 1U);
  claims_.Release("a", [](const Status& status) { EXPECT_EQ(status, OkStatus()); });
  EXPECT_TRUE(brain_->Held().empty());
}

TEST_F(HostClaimsTest, UnderNullNothingIsReserved) {
  EXPECT_EQ(Reserve("a"), StatusCode::kOk);
  active_ = nullptr;
  EXPECT_EQ(Reserve("c"), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(claims_.Held().empty());
}

// The next brain, also that of the next daemon, takes over what the state has.
TEST_F(HostClaimsTest, UnderNullAReleaseReachesTheState) {
  test::CrashingFileSystem files(1);
  const StateLabel machine("m");
  const auto open = [&] {
    return std::make_unique<StateStore>(files, "state", machine, [](std::string_view) {});
  };
  const auto has = [](const StateStore& state, const std::string& uid) {
    return state.FindNote(StateStore::PodNote::kClaim, PodSandboxId(uid)).has_value();
  };
  std::unique_ptr<StateStore> state = open();
  state->PutNote(StateStore::PodNote::kClaim, PodSandboxId("a"), "claim");
  state->PutNote(StateStore::PodNote::kClaim, PodSandboxId("b"), "claim");
  active_ = nullptr;
  HostClaims claims(
      loop_, [] { return nullptr; }, state.get());
  std::optional<Status> released;
  claims.Release("a", [&released](const Status& status) { released = status; });
  EXPECT_FALSE(released.has_value()) << "it waits for the disk";
  ASSERT_TRUE(RunUntil(loop_, [&released] { return released.has_value(); }));
  EXPECT_EQ(released, OkStatus());
  state = nullptr;
  state = open();
  EXPECT_FALSE(has(*state, "a"));
  EXPECT_TRUE(has(*state, "b"));
}

// A call that waits for it would block all later ones.
TEST_F(HostClaimsTest, ABrainThatEndsLeavesNobodyWaiting) {
  brain_->waits = true;
  std::optional<StatusCode> code;
  claims_.Reserve(ClaimFor("a"),
                  [&code](const StatusOr<ClaimGrant>& grant) { code = grant.status().code(); });
  active_ = nullptr;
  brain_.reset();
  ASSERT_TRUE(RunUntil(loop_, [&code] { return code.has_value(); }));
  EXPECT_EQ(*code, StatusCode::kUnavailable);
}

}  // namespace
}  // namespace resmgr
