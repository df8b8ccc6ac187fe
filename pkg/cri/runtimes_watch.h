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
#include "pkg/h2/flush_queue.h"
#include "pkg/metrics/metrics.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// A runtime behind the relay for display. A value type.
struct RuntimeView {
  enum class State {
    kConnected,
    kAway,     // no process listens at its socket
    kHanging,  // it takes calls and does not answer
  };

  std::string name{};
  std::string socket{};
  std::string version{};  // "containerd 1.7.24", the last report; "" before
  State state = State::kAway;
  // The time since when it is in this state, if it is watched.
  std::optional<std::chrono::system_clock::time_point> since{};
  // With several runtimes: the handlers configured for this runtime. With one runtime: the handlers
  // that it reports (none if it is too old), and aliases.
  std::vector<std::string> handlers{};
  // With several runtimes: the number of known objects. With one runtime: the number that it lists;
  // nullopt: it does not answer.
  std::optional<size_t> pods{};
  std::optional<size_t> containers{};
  // The number of clients' calls; nullopt: there is only one runtime, and no counting.
  std::optional<uint64_t> calls{};
  std::optional<uint64_t> errors{};  // calls with an error of the runtime, or that did not reach it
  // With several runtimes: number of pod sandboxes and containers that this one claims although
  // another has them.
  uint64_t refused_claims = 0;
  std::string last_error{};  // of the watch's own questions
};
// The state's name: "connected", "away", "hanging".
std::string_view ToString(RuntimeView::State state);

// Watches the runtimes behind the relay over its own connections: asks each for its version on
// request, and with several runtimes also every kPeriod and when one is late with an answer to a
// client. Loop's thread only.
class RuntimesWatch {
 public:
  // A runtime that takes longer than this to report its version hangs.
  static constexpr std::chrono::milliseconds kPatience{1'000};
  static constexpr std::chrono::seconds kPeriod{5};

  // Watches several runtimes; all arguments outlive this object, `metrics` may be null.
  RuntimesWatch(EventLoop& loop, h2::FlushQueue& flushes, Backends& backends, Metrics* metrics);
  // Watches a single runtime, which is asked only by Describe. `aliases` are those of its handlers;
  // they outlive this object and may be null.
  RuntimesWatch(EventLoop& loop, h2::FlushQueue& flushes, const Backends::Backend& backend,
                const HandlerAliases* aliases = nullptr);
  ~RuntimesWatch();

  // Asks nothing: returns the last answers of several runtimes, which are asked every kPeriod at
  // least. Runtimes that have not answered yet are left out. Empty with a single runtime.
  std::vector<RuntimeView> Known() const;

  // Asks all of them now. Runs `done` once, later, after at most twice kPatience; not after the end
  // of this object. A single runtime is also asked for its pods and handlers.
  void Describe(std::function<void(std::vector<RuntimeView>)> done);

 private:
  struct Watched;
  struct Round;

  void Add(EventLoop& loop, h2::FlushQueue& flushes, const Backends::Backend& backend);
  void Ask(std::function<void()> done);
  // Asks a runtime that is late with an answer to a client, unless a question is under way.
  void AskSilent(size_t position);
  // Asks the only runtime for its pods and handlers.
  void Count(std::function<void()> done);
  void Probe(Watched& watched, const std::shared_ptr<Round>& round);
  void OnAnswer(Watched& watched, const StatusOr<std::string>& answer);
  void OnLost(Watched& watched, const Status& why);
  void SetState(Watched& watched, RuntimeView::State state);
  void Tell();
  std::vector<RuntimeView> Views() const;

  Backends* const backends_;                       // set with several runtimes
  const HandlerAliases* const aliases_ = nullptr;  // set with a single runtime
  Metrics* const metrics_;
  std::vector<std::unique_ptr<Watched>> all_;
  EventLoop::HandlePtr timer_;
};

}  // namespace resmgr
