// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "test/integration/daemon_fixture.h"
#include "test/support/hostile/raw_client.h"
#include "test/support/programs/programs.h"

namespace resmgr::test {

// The limit of the median time of another client's call.
inline constexpr milliseconds kUndisturbed{50};
// The limit of pkg/adr/0002-http2.md: 128 MiB that peers make the daemon keep, and its own memory.
inline constexpr int64_t kMemoryLimitKib = (128 + 32) * 1024;

class SlowPeersTest : public DaemonTest {
 protected:
  ~SlowPeersTest() override {
    stop_ = true;
    for (std::thread& thread : threads_)
      thread.join();
    daemon_.reset();
  }

  // Repeats `disturb` on a thread of its own until the test ends.
  void Meanwhile(std::function<bool()> disturb) {
    threads_.emplace_back([this, disturb = std::move(disturb)] {
      while (!stop_ && disturb())
        ++disturbances_;
    });
  }

  // Waits until the functions given to Meanwhile have run `count` times in all.
  bool WaitForDisturbances(int count) {
    return Eventually([&] { return disturbances_ >= count; });
  }

  // A client that keeps sending this and reads nothing.
  void Flood(const std::string& once, const std::string& again) {
    Meanwhile([this, once, again, client = std::shared_ptr<RawClient>()]() mutable {
      if (client == nullptr) {
        client = std::make_shared<RawClient>(RelaySocket());
        if (!client->Start() || !client->Send(once)) client = nullptr;
      } else if (!client->Send(again, milliseconds(200))) {
        client = nullptr;
        std::this_thread::sleep_for(milliseconds(1));
      }
      return true;
    });
  }

  // Checks the median time of some calls of an unrelated client.
  void ExpectOthersUndisturbed(milliseconds limit = kUndisturbed) {
    CriClient other = Relayed();
    std::string error;
    // A connection that its client gave up in the middle of an attack is tried again; times are
    // judged only after it.
    const auto served = [&] {
      return (error = other.Call(kVersion, {""}).status.error_message()).empty();
    };
    ASSERT_TRUE(SanitizedPrograms() ? Eventually(served, 3 * kPatience) : served()) << error;
    std::vector<std::chrono::steady_clock::duration> times;
    for (int i = 0; i < 21; ++i) {
      const auto start = std::chrono::steady_clock::now();
      ASSERT_TRUE(other.Call(kVersion, {""}).status.ok()) << i;
      times.push_back(std::chrono::steady_clock::now() - start);
      std::this_thread::sleep_for(milliseconds(5));
    }
    std::ranges::sort(times);
    const auto median = std::chrono::duration<double, std::milli>(times[times.size() / 2]);
    if (!SanitizedPrograms()) {
      EXPECT_LT(median, limit) << "ms";
    }
    RecordProperty("median_ms", std::to_string(median.count()));
    std::printf("another client's Version: median %.2f ms, worst %.2f ms\n", median.count(),
                std::chrono::duration<double, std::milli>(times.back()).count());
  }

  void ExpectBoundedMemory() {
    std::printf("peak of the daemon's memory: %lld KiB\n",
                static_cast<long long>(ProcStatus("VmHWM:")));
    if (!SanitizedPrograms()) {
      EXPECT_LT(ProcStatus("VmHWM:"), kMemoryLimitKib) << "KiB at the most";
    }
  }

  std::vector<std::thread> threads_;
  std::atomic<bool> stop_{false};
  std::atomic<int> disturbances_{0};
};

}  // namespace resmgr::test
