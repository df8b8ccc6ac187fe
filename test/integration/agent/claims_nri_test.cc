// SPDX-License-Identifier: Apache-2.0
// Claims where the daemon is a plugin of the runtime's NRI: containers show them by the variables
// that the runtime made of CDI devices, and that users may type.
#include <memory>
#include <string>
#include <utility>

#include "test/integration/agent/claims_fixture.h"
#include "test/support/nri_runtime/nri_runtime.h"

namespace resmgr::test {
namespace {

class ClaimsOnNriTest : public ClaimsTest {
 protected:
  ClaimsOnNriTest() {
    auto nri = NriRuntime::Start(Path("nri.sock"), {.name = "cri-o", .version = "1.34.0"});
    EXPECT_THAT(nri, IsOk());
    nri_ = *std::move(nri);
  }
  void StartOnNri() {
    StartAgent();
    StartDaemon(ClaimFlags({"-mode", "nri-plugin", "-nri-socket", Path("nri.sock")}));
    ASSERT_TRUE(nri_->AwaitSynchronized(1));
    ASSERT_TRUE(Registered()) << daemon_->Log();
  }
  // The CPUs of a new container of pod "uid-POD" with a variable of this claim, or why it is
  // refused.
  std::string Created(const std::string& pod, const std::string& claim) {
    nri_api::CreateContainerRequest request = NriCreation(pod, 0);
    request.mutable_container()->add_env(VariableOf(claim) + "=1-4");
    const auto created = nri_->CreateContainer(request);
    return created.ok() ? created->adjust().linux().resources().cpu().cpus()
                        : Describe(created.status());
  }

  std::unique_ptr<NriRuntime> nri_;
};

TEST_F(ClaimsOnNriTest, D10AVariableCountsForThePodsThatTheClaimIsReservedFor) {
  StartOnNri();
  Allocate("a", {.cpus = 4, .pods = {"uid-mine"}});
  ASSERT_THAT(Prepare("a"), IsOk()) << Logs();
  EXPECT_THAT(Created("neighbour", "a"), testing::HasSubstr("prepared for other pods"));
  EXPECT_EQ(Created("mine", "a"), CpusOf("a").ToString()) << Logs();
}

TEST_F(ClaimsOnNriTest, D10AVariableOfNoClaimIsIgnoredAndTold) {
  StartOnNri();
  Allocate("a", 4);
  EXPECT_THAT(CpuSet::Parse(Created("early", "a")), IsOk()) << "nothing is held yet";
  EXPECT_TRUE(Logged("default/early/early shows " + VariableOf("a"))) << Logs();
  ASSERT_THAT(Prepare("a"), IsOk()) << Logs();
  const auto cpus = CpuSet::Parse(Created("typed", "never"));
  ASSERT_THAT(cpus, IsOk());
  EXPECT_FALSE(cpus->Intersects(CpusOf("a")));
  EXPECT_TRUE(Logged("default/typed/typed shows " + VariableOf("never"))) << Logs();
}

}  // namespace
}  // namespace resmgr::test
