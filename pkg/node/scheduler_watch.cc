// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/scheduler_watch.h"

#include <algorithm>
#include <utility>

#include <google/protobuf/util/message_differencer.h>

namespace resmgr {
namespace {

using google::protobuf::util::MessageDifferencer;
using ViewClock = std::chrono::steady_clock;

// The pause after a view, as a multiple of the time that the view took (tens of milliseconds on a
// large machine).
constexpr int kPauseForTime = 50;
constexpr std::chrono::seconds kLongestPause{30};

}  // namespace

void SchedulerWatch::NoteConfiguration(const NrtConfig& config) {
  config_ = config;
  // Views cost the loop time, so those for later configurations are spaced out like others.
  config_.publish&& looked_ ? Note() : Look();
}

void SchedulerWatch::Note() {
  if (timer_ != nullptr || host_ == nullptr || !config_.publish) return;
  std::chrono::milliseconds wait = options_.gather;
  if (looked_) {
    const auto due = *looked_ + pause_ - options_.loop.Now();
    wait = std::max(wait, std::chrono::ceil<std::chrono::milliseconds>(due));
  }
  LookAfter(wait);
}

void SchedulerWatch::LookAfter(std::chrono::milliseconds wait) {
  timer_ = options_.loop.After(wait, [this] { Look(); });
}

void SchedulerWatch::Look() {
  timer_.reset();
  if (host_ == nullptr) return;
  const ResourceManager* const manager = host_->manager();
  if (manager == nullptr || !config_.publish) {
    if (told_ && told_->absent()) return;
    told_.emplace().set_absent(true);
    return options_.tell(*told_);
  }
  if (!manager->synchronizer().ready()) return LookAfter(options_.period);
  const ViewClock::time_point start = ViewClock::now();
  SchedulerView view = options_.empty ? SchedulerView() : Make(*manager);
  looked_ = options_.loop.Now();
  if (options_.repeats || !told_ || !MessageDifferencer::Equals(*told_, view)) {
    told_ = std::move(view);
    options_.tell(*told_);
  }
  pause_ = std::clamp<ViewClock::duration>(
      kPauseForTime * (ViewClock::now() - start), options_.period,
      std::max<ViewClock::duration>(options_.period, kLongestPause));
}

SchedulerView SchedulerWatch::Make(const ResourceManager& manager) {
  const ViewClock::time_point start = ViewClock::now();
  SchedulerView view = MakeSchedulerView(options_.machine, manager.policy(), manager.snapshot(),
                                         config_.alignment == NrtAlignment::kRefuse);
  if (config_.pools) AddViewPools(manager.policy(), manager.snapshot(), view);
  if (options_.metrics != nullptr) options_.metrics->SchedulerViewMade(ViewClock::now() - start);
  return view;
}

}  // namespace resmgr
