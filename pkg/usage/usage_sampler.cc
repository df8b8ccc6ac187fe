// SPDX-License-Identifier: Apache-2.0
#include "pkg/usage/usage_sampler.h"

#include <algorithm>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/log/log.h"
#include "pkg/usage/usage_reader.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;

// Limit of waiting calls, each of which has a client of the admin socket.
constexpr size_t kMostWaiting = 64;
// Samples may cost 1/500 of one CPU: 0.2 %.
constexpr int kCostFactor = 500;
// Limit of the pause in intervals, so that figures stay recent even if samples are costly.
constexpr int kLongestPause = 6;  // intervals

}  // namespace

UsageSampler::UsageSampler(Options options)
    : options_(std::move(options)), thread_(options_.loop, "usage", milliseconds(0)) {}

void UsageSampler::Configure(const UsageConfig& config) {
  const bool changed = std::exchange(interval_, config.interval) != config.interval;
  if (changed && next_ != nullptr && last_ != nullptr) Schedule(PauseAfter(*last_));
}

void UsageSampler::SetAlways(bool always) {
  always_ = always;
  if (always_) Start();
}

void UsageSampler::LookUntil(milliseconds pause) {
  look_until_ = std::max(look_until_, options_.clock.Steady() + std::max(pause, 3 * interval_));
  Start();
}

void UsageSampler::Touch() {
  LookUntil(options_.monitors_on);
}

void UsageSampler::Look(Done done) {
  if (hangs_since_) return done(Hangs());
  if (waiting_.size() >= kMostWaiting)
    return done(ResourceExhausted("{} clients wait for figures", waiting_.size()));
  if (last_ != nullptr) {
    done(last_);
  } else {
    waiting_.push_back(std::move(done));
  }
  // If the thread cannot be started, this answers the waiting clients.
  LookUntil(options_.looks_on);
}

bool UsageSampler::Wanted() const {
  return always_ || options_.clock.Steady() < look_until_;
}

void UsageSampler::Start() {
  if (running_ || busy_) return;
  running_ = true;
  fresh_ = true;
  Begin();
}

void UsageSampler::Begin() {
  next_.reset();
  if (!Wanted()) {
    running_ = false;
    last_.reset();
    problems_.Forget();
    return;
  }
  const Status begun = thread_.Run([this, take = options_.take, subjects = options_.subjects(),
                                    first = std::exchange(fresh_, false)]() -> EventLoop::Task {
    return [this, figures = take(subjects, first)] { End(figures); };
  });
  if (!begun.ok()) {
    fresh_ = true;
    Lose();
    Answer(begun);
    return Schedule(std::min(options_.first_pause, interval_));
  }
  busy_ = true;
  deadline_ = options_.clock.After(options_.patience, [this] { Hang(); });
}

void UsageSampler::Hang() {
  hangs_since_ = options_.clock.Now();
  hangs_at_ = options_.in_hand->Get();
  Lose();
  GetLogger("usage").Warn(
      "reading {} takes more than {} s: nothing is known of what is used", Printable(hangs_at_),
      std::chrono::duration_cast<std::chrono::seconds>(options_.patience).count());
  Answer(Hangs());
}

void UsageSampler::Lose() {
  last_.reset();
  problems_.Forget();
  options_.lost();
}

Status UsageSampler::Hangs() const {
  return Unavailable("what is used is not known: reading {} hangs", Printable(hangs_at_));
}

void UsageSampler::End(const Figures& figures) {
  busy_ = false;
  deadline_.reset();
  Logger& log = GetLogger("usage");
  if (std::exchange(hangs_since_, std::nullopt)) {
    log.Info("reading {} has ended: use is sampled again", Printable(hangs_at_));
    // The next sample begins anew, since figures must not span the hang.
    fresh_ = true;
    return Schedule(interval_);
  }
  for (const std::string& note : figures->notes)
    log.Info("{}", note);
  if (!figures->complete) return Schedule(std::min(options_.first_pause, interval_));
  last_ = figures;
  const auto& effects = problems_.effects();
  for (size_t ended = problems_.Observe(*figures); ended > 0; --ended)
    log.Info("{}: {}", effects[effects.size() - ended].kind,
             effects[effects.size() - ended].message);
  options_.told(*figures);
  Answer(last_);
  Schedule(PauseAfter(*figures));
}

milliseconds UsageSampler::PauseAfter(const UsageFigures& figures) const {
  const auto budget = std::chrono::duration_cast<milliseconds>(figures.cost * kCostFactor);
  return std::clamp(budget, interval_, kLongestPause * interval_);
}

void UsageSampler::Schedule(milliseconds pause) {
  next_ = options_.clock.After(pause, [this] { Begin(); });
}

void UsageSampler::Answer(const StatusOr<Figures>& result) {
  // A callback may add further calls.
  for (const Done& done : std::exchange(waiting_, {}))
    done(result);
}

std::vector<Problem> UsageSampler::problems() const {
  std::vector<Problem> problems = problems_.List();
  if (hangs_since_) {
    problems.push_back({.kind = "state",
                        .since = *hangs_since_,
                        .message = std::string(Message(Hangs())),
                        .objects = {hangs_at_},
                        .next = "restart the daemon once the file can be read"});
  }
  return problems;
}

UsageSampler::Take TakeFrom(std::string_view host_root, std::shared_ptr<FileInHand> in_hand) {
  struct Taken {
    Taken(std::string_view root, std::shared_ptr<FileInHand> file)
        : reader(root, std::move(file)) {}
    UsageReader reader;
    std::optional<UsageCounters> former{};
  };
  const auto taken = std::make_shared<Taken>(host_root, std::move(in_hand));
  return [taken](const std::vector<UsageSubject>& subjects, bool first) {
    const std::chrono::nanoseconds begun = ThreadCpuTime();
    UsageCounters now = taken->reader.Read(subjects);
    if (first) taken->former.reset();
    auto figures = std::make_shared<UsageFigures>(
        ComputeUsage(taken->former ? &*taken->former : nullptr, now, subjects));
    taken->former = std::move(now);
    figures->cost = ThreadCpuTime() - begun;
    return figures;
  };
}

}  // namespace resmgr
