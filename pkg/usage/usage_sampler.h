// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/module_configs.h"
#include "pkg/model/problem.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/off_loop.h"
#include "pkg/usage/usage_figures.h"
#include "pkg/usage/usage_problems.h"
#include "pkg/usage/usage_reader.h"

namespace resmgr {

// Samples what containers use, on a thread away from the loop, as long as figures are wanted: by
// metrics or by a client that has asked lately. If a sample costs more than a 500th of the
// interval, the pause after it is longer. Loop's thread only.
class UsageSampler {
 public:
  using Figures = std::shared_ptr<const UsageFigures>;
  using Done = std::function<void(StatusOr<Figures>)>;
  // Takes one sample, on the other thread, and may hang. `first`: forgets the previous sample.
  using Take = std::function<Figures(const std::vector<UsageSubject>& subjects, bool first)>;

  struct Options {
    EventLoop& loop;
    Clock& clock;
    std::function<std::vector<UsageSubject>()> subjects;
    std::function<void(const UsageFigures&)> told = [](const UsageFigures&) {};
    // Called if the last figures have become invalid because a sample hangs or failed.
    std::function<void()> lost = [] {};
    Take take;
    std::shared_ptr<FileInHand> in_hand;
    // The pause between the first two samples.
    std::chrono::milliseconds first_pause = std::chrono::seconds(1);
    // If a sample takes longer, it counts as hanging.
    std::chrono::milliseconds patience = std::chrono::seconds(5);
    // How long samples are taken after a client asked; at least three intervals.
    std::chrono::milliseconds looks_on = std::chrono::seconds(30);
    // The same after Touch: a monitor that asks every minute or two can see problems that take a
    // minute to show.
    std::chrono::milliseconds monitors_on = std::chrono::seconds(150);
  };
  explicit UsageSampler(Options options);
  UsageSampler(const UsageSampler&) = delete;
  UsageSampler& operator=(const UsageSampler&) = delete;

  void Configure(const UsageConfig& config);
  // Whether samples are taken without a client.
  void SetAlways(bool always);

  // Runs `done`, now or later, with figures of the last interval; if there are none yet, after two
  // samples. Unavailable: a sample hangs, and the message names the file, or there is no thread.
  // ResourceExhausted: too many clients wait.
  void Look(Done done);
  // A client asks for problems, and will probably ask again: keeps sampling for monitors_on.
  void Touch();
  // Keeps sampling for this time from now on, and for three intervals at least.
  void LookOn(std::chrono::milliseconds time) { LookUntil(time); }

  // Problems of the containers' use, according to the samples so far, and problems of sampling
  // itself.
  std::vector<Problem> problems() const;
  // Recently ended problems that had been reported, with their effects.
  const std::deque<UsageProblems::Effect>& effects() const { return problems_.effects(); }
  // Advice for this container; "" if there is none.
  std::string AdviceOf(const std::string& id) const { return problems_.AdviceOf(id); }

 private:
  bool Wanted() const;
  void LookUntil(std::chrono::milliseconds pause);
  void Start();
  void Begin();
  void End(const Figures& figures);
  void Hang();
  void Lose();
  void Schedule(std::chrono::milliseconds pause);
  std::chrono::milliseconds PauseAfter(const UsageFigures& figures) const;
  void Answer(const StatusOr<Figures>& result);
  Status Hangs() const;

  const Options options_;
  std::chrono::milliseconds interval_ = UsageConfig().interval;
  bool always_ = false;
  Clock::SteadyTime look_until_{};
  OffLoop thread_;
  EventLoop::HandlePtr next_;
  EventLoop::HandlePtr deadline_;
  bool running_ = false;  // samples follow each other
  bool fresh_ = true;     // the next sample is the first one
  bool busy_ = false;     // a sample is being taken
  std::optional<Clock::Time> hangs_since_{};
  std::string hangs_at_;
  Figures last_;  // figures of the last two samples; nullptr: none since sampling started
  UsageProblems problems_;
  std::vector<Done> waiting_;
};

// Takes samples of the machine below `host_root`. Owns all that it uses.
UsageSampler::Take TakeFrom(std::string_view host_root, std::shared_ptr<FileInHand> in_hand);

}  // namespace resmgr
