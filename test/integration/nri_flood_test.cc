// SPDX-License-Identifier: Apache-2.0
// Plugins that ask for changes as fast as they can: other clients and one honest plugin do not
// notice.
#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "pkg/nri/testing/fake_plugin.h"
#include "pkg/sys/unix_socket.h"
#include "test/integration/slow_peers_fixture.h"

namespace resmgr::test {
namespace {

namespace api = ::nri::pkg::api::v1alpha1;
using Clock = std::chrono::steady_clock;

constexpr int kThreads = 4;
constexpr int64_t kMemoryOfFloodKib = 128 * 1024;
constexpr milliseconds kUnderFlood{300};

class NriFloodTest : public SlowPeersTest {
 protected:
  void SetUp() override {
    StartRuntime();
    const std::string file = Path("config.yaml");
    std::ofstream(file) << "policy: {Active: static, ReservedResources: {CPU: 1}}\n"
                           "nri: {Host: {Socket: "
                        << Path("nri.sock") << ", PluginPath: disabled}}\n";
    StartDaemon(Flags({"-config", file}));
    ASSERT_TRUE(Logged("serving NRI plugins"));
  }

  // Plugins that flood, of which every other one sends long requests.
  void FloodWith(int plugins, int thread, const std::string& container) {
    Meanwhile([this, plugins, thread, container] {
      EventLoop loop;
      std::vector<std::unique_ptr<nri::test::FakePlugin>> all;
      for (int i = 0; i < plugins; ++i) {
        auto socket = ConnectUnix(Path("nri.sock"));
        if (!socket.ok()) return false;
        all.push_back(std::make_unique<nri::test::FakePlugin>(
            loop, *std::move(socket),
            nri::test::FakePluginOptions{.index = "20",
                                         .name = fmt::format("flood{}-{}", thread, i)}));
      }
      const auto flood = loop.Every(milliseconds(1), [&] {
        for (size_t i = 0; i < all.size(); ++i) {
          nri::test::FakePlugin& plugin = *all[i];
          if (!plugin.synchronized || plugin.lost) continue;
          plugin.update_answers.clear();
          plugin.UpdateContainers({Update(container, i % 2 == 1)}, i % 2 == 1 ? 1 : 50);
          ++disturbances_;
        }
      });
      const auto end = loop.Every(milliseconds(10), [&] {
        if (stop_) loop.Stop();
      });
      loop.Run();
      return false;
    });
  }
  static api::ContainerUpdate Update(const std::string& container, bool is_long) {
    api::ContainerUpdate update;
    update.set_container_id(is_long ? std::string(size_t{1} << 20, 'x') : container);
    update.mutable_linux()->mutable_resources()->mutable_cpu()->mutable_shares()->set_value(512);
    return update;
  }
};

TEST_F(NriFloodTest, SixtyFourPluginsDelayNoOtherClient) {
  // With sanitizers, where no time is judged, a few keep the daemon as busy.
  const int plugins = SanitizedPrograms() ? 8 : 64;
  const int rounds = SanitizedPrograms() ? 1 : 5;
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 1));
  for (int i = 0; i < kThreads; ++i)
    FloodWith(plugins / kThreads, i, running.container);
  ASSERT_TRUE(WaitForDisturbances(2000));
  EXPECT_TRUE(Logged("floods this daemon"));
  std::this_thread::sleep_for(seconds(2));
  // Each round's slowest call. Other work on the machine delays some of them, a flood that delays
  // calls would delay each.
  milliseconds quietest = milliseconds::max();
  for (int i = 0; i < rounds; ++i) {
    const std::string name = fmt::format("meanwhile{}", i);
    milliseconds worst{0};
    const auto timed = [&worst](const auto& call) {
      const auto start = Clock::now();
      call();
      worst = std::max(worst, std::chrono::duration_cast<milliseconds>(Clock::now() - start));
    };
    StatusOr<std::string> pod = Unavailable("");
    StatusOr<std::string> container = Unavailable("");
    timed([&] { pod = client.RunPod(MakeBestEffortPod(name)); });
    ASSERT_THAT(pod, IsOk());
    timed([&] {
      container =
          client.CreateContainer(*pod, MakeBestEffortPod(name), MakeBestEffortContainer("main"));
    });
    ASSERT_THAT(container, IsOk());
    timed([&] { EXPECT_THAT(client.StartContainer(*container), IsOk()); });
    std::printf("the slowest call under a flood: %lld ms\n", static_cast<long long>(worst.count()));
    quietest = std::min(quietest, worst);
  }
  if (!SanitizedPrograms()) {
    EXPECT_LT(quietest, kUnderFlood);
    EXPECT_LT(ProcStatus("VmHWM:"), kMemoryOfFloodKib);
  }
  ExpectOthersUndisturbed(kUnderFlood);
  ExpectBoundedMemory();
}

}  // namespace
}  // namespace resmgr::test
