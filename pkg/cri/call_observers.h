// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/cri/method_table.h"
#include "pkg/dump/dumper.h"
#include "pkg/grpc/grpc_message.h"
#include "pkg/h2/header_block.h"
#include "pkg/metrics/metrics.h"

namespace resmgr {

// Copies one call's messages, as they pass, to the dumper. Never delays the call.
class CallTap {
 public:
  // Null if the dumper excludes this method. `id` must be unique.
  static std::unique_ptr<CallTap> Create(dump::Dumper& dumper, uint64_t id, const Method& method,
                                         bool intercepted);
  // For Dumper::Options::decompress, since decompression is too slow for the loop.
  static StatusOr<std::string> Decompress(const dump::Payload& payload);
  ~CallTap();
  CallTap(const CallTap&) = delete;
  CallTap& operator=(const CallTap&) = delete;

  void OnRequestHeaders(const h2::HeaderBlock& headers);
  void OnRequestData(std::string_view data);
  // The runtime gets the request's only message, `before`, with `suffix` appended.
  void OnRequestChanged(std::string_view before, std::string_view suffix);
  // The runtime gets the message `after` instead of `before`.
  void OnRequestReplaced(std::string_view before, std::string after);
  void OnReplyHeaders(const h2::HeaderBlock& headers);
  void OnReplyData(std::string_view data);
  void OnEnd(const GrpcStatus& status);

 private:
  CallTap(dump::Dumper& dumper, uint64_t id, const Method& method, bool intercepted, bool messages);
  // The messages of one direction so far.
  struct Collection {
    Collection(size_t limit, GrpcMessageReader::Sink sink) : reader(limit, std::move(sink)) {}
    GrpcMessageReader reader;
    size_t reserved = 0;  // bytes of the dumper's room
  };

  void Collect(Collection& collection, std::string_view data);
  void Release(Collection& collection);
  void GiveUp();
  static dump::Payload ToPayload(GrpcMessage message, const std::string& encoding);

  dump::Dumper& dumper_;
  const std::string path_;
  dump::CallRef ref_;
  std::string request_encoding_;
  std::string reply_encoding_;
  bool request_reported_ = false;
  // Empty if the dumper has no room for the rest of the call.
  std::optional<Collection> requests_;
  std::optional<Collection> replies_;
};

// The time of one call here and at the runtime, for the metrics. Reads no clock before Begin.
class CallClock {
 public:
  using Clock = std::chrono::steady_clock;

  void Begin() { began_ = Clock::now(); }
  bool begun() const { return began_ != Clock::time_point{}; }
  // Called when the runtime is asked; the first call counts.
  void NoteForwarded() {
    if (begun() && forwarded_ == Clock::time_point{}) forwarded_ = Clock::now();
  }
  // Called when the runtime has answered; the last call counts.
  void NoteAnswered() {
    if (forwarded_ != Clock::time_point{}) answered_ = Clock::now();
  }

  struct Spent {
    Clock::duration ours;
    Clock::duration runtime;  // 0: the runtime was not asked
  };
  // The times so far. If the runtime has not answered yet, its time ends now.
  Spent Read() const {
    const Clock::time_point now = Clock::now();
    Clock::duration runtime{0};
    if (forwarded_ != Clock::time_point{}) {
      runtime = (answered_ == Clock::time_point{} ? now : answered_) - forwarded_;
    }
    return {now - began_ - runtime, runtime};
  }

 private:
  Clock::time_point began_{};
  Clock::time_point forwarded_{};
  Clock::time_point answered_{};
};

// Counts the relay's calls by method, if metrics are requested. Loop's thread only.
class CallCounts {
 public:
  // nullptr: no counting. Not owned; outlives this object.
  explicit CallCounts(Metrics* metrics);

  bool on() const { return metrics_ != nullptr; }
  // Counts a call in flight, whose clock has begun. Requires on().
  void Begin() { metrics_->CountInFlight(1); }
  // Counts a call that ended with this gRPC status; its clock may not have begun. Does nothing
  // unless on().
  void End(const Method& method, bool intercepted, int grpc_code, const CallClock& clock);

 private:
  Metrics* const metrics_;
  // Indexed by Method::place; two counters each, for passed and for intercepted calls. Null until
  // the first such call.
  std::vector<std::array<CallCounter*, 2>> counters_;
};

}  // namespace resmgr
