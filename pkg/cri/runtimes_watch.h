// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/cri/backends.h"
#include "pkg/grpc/unary_client.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/metrics/metrics.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// A runtime behind the relay, as people see it. A value.
struct RuntimeView {
  enum class State {
    kConnected,
    kAway,     // nothing listens at its socket
    kHanging,  // it takes calls and does not answer
  };

  std::string name{};
  std::string socket{};
  std::string version{};  // "containerd 1.7.24", as told last; "" before
  State state = State::kAway;
  // Since when, where it was watched.
  std::optional<std::chrono::system_clock::time_point> since{};
  // Of several: that the configuration gives it alone. Of the only one: that it tells (none where
  // it is older than that), with aliases.
  std::vector<std::string> handlers{};
  // Of several: that are known here. Of the only one: that it lists; nullopt: it does not answer.
  std::optional<size_t> pods{};
  std::optional<size_t> containers{};
  // The calls of clients; nullopt: there is only one runtime, and nothing is counted.
  std::optional<uint64_t> calls{};
  std::optional<uint64_t> errors{};  // of these: with an error of the runtime, or did not reach it
  // With several runtimes: pod sandboxes and containers that this one claims and another one has.
  uint64_t refused_claims = 0;
  std::string last_error{};  // of our own questions
};
// "connected", "away", "hanging".
std::string_view ToString(RuntimeView::State state);

// Looks after the runtimes behind the relay over connections of its own: asks each for its version
// whenever people want to know, and where there are several also every kPeriod and when one is late
// with an answer to a client. Loop's thread only.
class RuntimesWatch {
 public:
  // A runtime that takes longer than this to tell its version hangs.
  static constexpr std::chrono::milliseconds kPatience{1'000};
  static constexpr std::chrono::seconds kPeriod{5};

  // Of several; all of these outlive it, `metrics` may be null.
  RuntimesWatch(EventLoop& loop, h2::FlushQueue& flushes, Backends& backends, Metrics* metrics);
  // Of the only one, which is never asked unless people want to know. `aliases` of its handlers,
  // which outlive this, may be null.
  RuntimesWatch(EventLoop& loop, h2::FlushQueue& flushes, Backends::Backend backend,
                const HandlerAliases* aliases = nullptr);
  ~RuntimesWatch();

  // Asks all of them now. Runs `done` once, later, after twice kPatience at most; not after the end
  // of this object. The only one is asked for what it has, too.
  void Describe(std::function<void(std::vector<RuntimeView>)> done);

 private:
  struct Watched;
  struct Round;

  void Add(EventLoop& loop, h2::FlushQueue& flushes, const Backends::Backend& backend);
  void Ask(std::function<void()> done);
  // Asks one that is late with an answer to a client, unless it is being asked.
  void AskSilent(size_t position);
  // What the only one has, and its handlers.
  void Count(std::function<void()> done);
  void Probe(Watched& watched, const std::shared_ptr<Round>& round);
  void OnAnswer(Watched& watched, const StatusOr<std::string>& answer);
  void OnLost(Watched& watched, const Status& why);
  void SetState(Watched& watched, RuntimeView::State state);
  void Tell();
  std::vector<RuntimeView> Views() const;

  Backends* const backends_;                       // where there are several
  const HandlerAliases* const aliases_ = nullptr;  // where there is only one
  Metrics* const metrics_;
  std::vector<std::unique_ptr<Watched>> all_;
  EventLoop::HandlePtr timer_;
};

}  // namespace resmgr
