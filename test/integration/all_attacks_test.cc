// SPDX-License-Identifier: Apache-2.0
// The memory that hostile clients can make the daemon hold in all ways at once. test/bench shows
// each alone.
#include <limits>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "pkg/sys/file_limit.h"
#include "test/integration/slow_peers_fixture.h"
#include "test/support/hostile/attacks.h"
#include "test/support/programs/programs.h"

namespace resmgr::test {
namespace {

class AllAttacksTest : public SlowPeersTest {
 protected:
  void SetUp() override {
    RaiseFileLimit();
    auto runtime = StartHostileRuntime(RuntimeSocket());
    ASSERT_THAT(runtime, IsOk());
    hostile_ = *std::move(runtime);
    StartDaemon(StaticFlags());
    ASSERT_TRUE(Logged("the runtime holds")) << daemon_->Log();
    ASSERT_EQ(Relayed().RunPod(MakeBestEffortPod("big")).value_or(""), kHostilePod);
  }
  // Waits until the daemon's memory hardly grows, or for the longest time of a test.
  void WaitForPeak() {
    constexpr int64_t kHardlyKib = 1024;
    int64_t before = -kHardlyKib;
    for (int i = 0; i < 15; ++i) {
      std::this_thread::sleep_for(seconds(1));
      const int64_t peak = ProcStatus("VmHWM:");
      if (peak - std::exchange(before, peak) < kHardlyKib) return;
    }
  }

  std::unique_ptr<RawRuntime> hostile_;
};

TEST_F(AllAttacksTest, TogetherAreBounded) {
  // With sanitizers the daemon is many times slower than the attackers: one thread of each attack
  // is enough to keep it busy, and others are served after the attack.
  const int threads = SanitizedPrograms() ? 1 : std::numeric_limits<int>::max();
  std::optional<AttackRun> run(std::in_place, Attacks(), RelaySocket(), threads);
  WaitForPeak();
  if (SanitizedPrograms()) run.reset();
  // Three dozen attacking threads leave others little of two processors.
  ExpectOthersUndisturbed(seconds(1));
  ExpectBoundedMemory();
}

}  // namespace
}  // namespace resmgr::test
