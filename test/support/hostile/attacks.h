// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "pkg/base/status.h"
#include "test/support/raw_http2/raw_http2.h"

namespace resmgr::test {

// One way to make the relay hold as much memory as it can be made to.
struct Attack {
  std::string name;
  int threads;
  // One of the threads, until `stop`; `pod` is a pod sandbox that the relay knows.
  std::function<void(const std::string& relay, const std::string& pod, std::atomic<bool>& stop)>
      run;
};

// All attacks; together they need a thousand connections.
const std::vector<Attack>& Attacks();

// A runtime for the attacks: it opens no window beyond the first bytes of a call, answers neither
// creations nor kNoAnswer, and answers kLongTrailers with little data before a header block of 200
// KiB.
inline constexpr char kNoAnswer[] = "/test.Echo/Unary";
inline constexpr char kLongTrailers[] = "/test.Echo/LongTrailers";
inline constexpr char kHostilePod[] = "pod1";
StatusOr<std::unique_ptr<RawRuntime>> StartHostileRuntime(const std::string& socket);

// Runs attacks until it is destroyed, each with its own number of threads or with `threads` at
// most.
class AttackRun {
 public:
  AttackRun(const std::vector<Attack>& attacks, const std::string& relay,
            int threads = std::numeric_limits<int>::max());
  ~AttackRun();
  AttackRun(const AttackRun&) = delete;
  AttackRun& operator=(const AttackRun&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace resmgr::test
