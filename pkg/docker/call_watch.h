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

// gRPC's code for a status of HTTP, in which metrics, dumps and stages count outcomes.
int GrpcCodeOf(int http_status);

// "/docker/ContainerCreate" for requests that are looked at, "/docker/GetImages" for others: the
// method and the first part of the path. "/docker/Other": not one of a few. Never the request's
// own text, of which there is no end. Pure function.
std::string_view CallPathOf(std::string_view method, std::string_view target);
// All that it returns.
std::vector<std::string> KnownCallPaths();

// Counts the requests of clients and shows them to the dumper: of those that are held their bodies,
// of others method and path. Header fields (X-Registry-Auth) and queries (build arguments) are
// never shown. Loop's thread only.
class CallWatch {
 public:
  // Either may be null; both outlive this and its calls.
  CallWatch(Metrics* metrics, dump::Dumper* dumper) : metrics_(metrics), dumper_(dumper) {}

  // One request and its reply. One that is destroyed before End was given up.
  class Call {
   public:
    Call(CallWatch& watch, std::string_view path, bool held);
    ~Call() { End(kGivenUp, "given up"); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // Of one that is not held.
    void ShowTarget(std::string_view method, std::string_view target);
    // Of one that is held, in this order.
    void ShowRequest(std::string_view body);
    void ShowForwarded(std::string_view before, const std::string* after);
    void ShowReply(std::string_view body);
    // It has no end by itself: its time is not counted.
    void NoteLasting() { lasting_ = true; }
    // Once; what follows does nothing. `status`: of HTTP.
    void End(int status, std::string_view message = {});

   private:
    using Clock = std::chrono::steady_clock;
    static constexpr int kGivenUp = 499;

    bool shows() const { return interest_ == dump::Interest::kMessages; }

    CallWatch& watch_;
    const std::string_view path_;  // static
    CallCounter* const counter_;
    dump::Interest interest_ = dump::Interest::kNone;
    dump::CallRef ref_;
    Clock::time_point began_;
    Clock::time_point forwarded_{};
    Clock::time_point answered_{};
    bool lasting_ = false;
    bool ended_ = false;
  };

  // Null where neither wants it.
  std::unique_ptr<Call> Begin(std::string_view method, std::string_view target, bool held);
  // Whether the dumper wants the bodies of such requests.
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
