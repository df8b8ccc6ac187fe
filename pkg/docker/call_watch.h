// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/dump/dumper.h"
#include "pkg/metrics/metrics.h"

namespace resmgr::docker {

// The paths under which requests are counted: "/docker/ContainerCreate" for those that are
// intercepted, "/docker/GetImages" (method and first part of the path) for others, "/docker/Other"
// for unknown ones. Never a request's own text, so that the number of paths is bounded.
std::vector<std::string> KnownCallPaths();

// Counts the requests of clients and shows them to the dumper: a creation with its body, a held
// request about an existing container with its path and any body, others with method and path.
// Header fields (X-Registry-Auth) and queries (build arguments) are never shown. Loop's thread
// only.
class CallWatch {
 public:
  // Either may be null; both outlive this object and its calls.
  CallWatch(Metrics* metrics, dump::Dumper* dumper) : metrics_(metrics), dumper_(dumper) {}

  // One request and its reply. Destroying it before End counts it as given up.
  class Call {
   public:
    // `path` is one of KnownCallPaths; `interest` is the dumper's.
    Call(CallWatch& watch, std::string_view path, dump::Interest interest, std::string_view method,
         std::string_view target, bool held);
    ~Call() { End(kGivenUp, "given up"); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // Shows a request that is not held.
    void ShowTarget();
    // Show a held request and its reply, in this order.
    void ShowRequest(std::string_view body);
    void ShowForwarded(std::string_view before, const std::string* after);
    void ShowReply(std::string_view body);
    // The call lasts until its client ends it, so its time is not counted.
    void NoteLasting() { lasting_ = true; }
    // Ends the call; later calls do nothing. `status` is HTTP's.
    void End(int status, std::string_view message = {});

   private:
    using Clock = std::chrono::steady_clock;
    static constexpr int kGivenUp = 499;

    bool shows() const { return interest_ == dump::Interest::kMessages; }
    void ShowJson(std::string text);

    CallWatch& watch_;
    const std::string_view path_;  // refers to a static text
    CallCounter* const counter_;
    const dump::Interest interest_;
    dump::CallRef ref_;
    std::string target_;  // method and path as a JSON object, if messages are shown
    Clock::time_point began_;
    Clock::time_point forwarded_{};
    Clock::time_point answered_{};
    bool lasting_ = false;
    bool ended_ = false;
  };

  // nullptr if neither the metrics nor the dumper need the call.
  std::unique_ptr<Call> Begin(std::string_view method, std::string_view target, bool held);
  // Whether the dumper shows the bodies of such requests.
  bool WantsBodies(std::string_view method, std::string_view target) const;
  void SetClients(size_t count) {
    if (metrics_ != nullptr) metrics_->SetConnections(Metrics::Peer::kClient, count);
  }

 private:
  Metrics* const metrics_;
  dump::Dumper* const dumper_;
  uint64_t last_id_ = 0;
};

}  // namespace resmgr::docker
