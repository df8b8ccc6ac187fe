// SPDX-License-Identifier: Apache-2.0
#include "test/bench/hostile.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"
#include "test/bench/load_client.h"
#include "test/bench/process_stats.h"
#include "test/bench/scenario.h"
#include "test/bench/server.h"
#include "test/support/containerd/child_process.h"
#include "test/support/hostile/attacks.h"

namespace resmgr::bench {
namespace {

constexpr std::chrono::seconds kAttackTime{10};
constexpr std::chrono::seconds kReady{20};
constexpr std::chrono::seconds kAfterwards{2};

// A daemon before a runtime that hostile clients like.
class Victim {
 public:
  Status Start(const std::string& daemon) {
    RESMGR_ASSIGN_OR_RETURN(runtime_, test::StartHostileRuntime(File("runtime")));
    RESMGR_ASSIGN_OR_RETURN(
        process_,
        test::ChildProcess::Start(
            Alone({daemon, "-policy", "static", "-reserved-resources", "CPU=1", "-topology",
                   "synthetic:package:1 core:32 pu:2", "-relay-socket", relay(), "-runtime-socket",
                   File("runtime"), "-relay-dir", File("state")}),
            File("log")));
    RESMGR_RETURN_IF_ERROR(test::WaitUntil("the daemon holds what the runtime has", kReady, [this] {
      return test::TextOf(File("log")).find("the runtime holds") != std::string::npos;
    }));
    LoadClient client(relay());
    return RunPod(client);
  }
  std::string relay() const { return File("relay"); }
  pid_t pid() const { return process_->pid(); }

 private:
  std::string File(const std::string& name) const { return directory_.File(name); }

  const TempDir directory_;
  std::unique_ptr<test::RawRuntime> runtime_;
  std::unique_ptr<test::ChildProcess> process_;
};

Status Try(const std::string& daemon, const std::string& name,
           const std::vector<test::Attack>& attacks) {
  Victim victim;
  RESMGR_RETURN_IF_ERROR(victim.Start(daemon));
  const int64_t before = RssKib(victim.pid());
  std::optional<test::AttackRun> run(std::in_place, attacks, victim.relay());
  std::this_thread::sleep_for(kAttackTime);
  const int64_t peak = PeakRssKib(victim.pid());
  run.reset();
  std::this_thread::sleep_for(kAfterwards);
  std::printf("%-40s %12lld %12lld %12lld\n", name.c_str(), static_cast<long long>(before),
              static_cast<long long>(peak), static_cast<long long>(RssKib(victim.pid())));
  std::fflush(stdout);
  return OkStatus();
}

}  // namespace

Status RunHostile(const std::string& daemon) {
  RaiseFileLimit();
  std::printf("%-40s %12s %12s %12s\n", "RSS in KiB", "before", "peak", "afterwards");
  for (const test::Attack& attack : test::Attacks())
    RESMGR_RETURN_IF_ERROR(Try(daemon, attack.name, {attack}));
  return Try(daemon, "all at once", test::Attacks());
}

}  // namespace resmgr::bench
