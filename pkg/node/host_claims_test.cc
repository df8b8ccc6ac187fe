// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/host_claims.h"

#include <memory>
#include <optional>

#include <gtest/gtest.h>

#include "pkg/dra/testing/fake_claims.h"
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

TEST_F(HostClaimsTest, UnderNullNothingIsReservedAndReleasesWait) {
  EXPECT_EQ(Reserve("a"), StatusCode::kOk);
  EXPECT_EQ(Reserve("b"), StatusCode::kOk);
  active_ = nullptr;
  claims_.NotePolicy();
  EXPECT_EQ(Reserve("c"), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(claims_.Held().empty());
  std::optional<Status> released;
  claims_.Release("a", [&released](const Status& status) { released = status; });
  EXPECT_EQ(released, OkStatus()) << "the pod ends";
  active_ = brain_.get();
  claims_.NotePolicy();
  ASSERT_EQ(claims_.Held().size(), 1U);
  EXPECT_EQ(claims_.Held().front().uid, "b");
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
